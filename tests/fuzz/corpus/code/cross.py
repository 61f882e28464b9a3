class CrossAttention(nn.Cell):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.attention = nn.MultiHeadAttention(d_model, n_head)

    def construct(self, query, key, value):
        return self.attention(query, key, value)
