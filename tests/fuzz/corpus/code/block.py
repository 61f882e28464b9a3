import mindspore.nn as nn
# a comment

class Block(nn.Cell):
    """Note.

    Args:
        dim: size
    """

    def __init__(self, dim=8, heads=None, *, p=0.1):
        super(Block, self).__init__()
        heads = dim // 4 if heads is None else heads
        self.dim = dim
        # above
        self.ffn = nn.SequentialCell(nn.Dense(dim, 4 * dim), nn.ReLU(), nn.Dense(4 * dim, dim))
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x, mask=None):
        # x: [B, T, dim]
        # -> out: [B, T, dim]
        y, z = ops.split(self.norm(x), [self.dim // 2, self.dim - self.dim // 2], axis=-1)
        both = ops.concat((z, y), -1)
        x = x + self.drop(self.ffn(both))
        if mask is not None:
            x = x * mask
        return x


class Net(nn.Cell):
    def __init__(self, n=2):
        super().__init__()
        self.layers = nn.CellList([Block(dim=16) for _ in range(n)])
        self.embed = nn.Embedding(30, 16, padding_idx=0)

    def construct(self, ids):
        # ids: [B, T] int64
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h)
        return h, self.helper(h)

    def helper(self, x):
        return ops.matmul(x, self.embed.embedding_table.T)
