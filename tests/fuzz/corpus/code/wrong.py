class A(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.CellList([nn.Dense(2, i) for i in range(10**9)])
        self.b = A()

    def construct(self, x):
        for i in range(10**9):
            x = (x, x)
        return self.construct(x[0][::-1, ..., 0])
