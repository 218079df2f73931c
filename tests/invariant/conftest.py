import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors gain nothing from threads, and sums stay in one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Parts(torch.nn.Module):
    """A linear classifier of two features in two parts; `weights` is what they amount to."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(2, 2, bias=False)
        self.head = torch.nn.Linear(2, 2)
        with torch.no_grad():
            self.encoder.weight.copy_(torch.eye(2))
            self.head.weight.zero_()
            self.head.bias.zero_()

    def forward(self, x):
        return self.head(self.encoder(x))

    @property
    def weights(self):
        return ((self.head.weight[1] - self.head.weight[0]) @ self.encoder.weight).detach()


def linear_environment(spurious, noise, seed, n=1000):
    """Labels, a first feature that tells them equally well everywhere, and a second one that does not."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=generator)
    normal = torch.randn(n, 2, generator=generator)
    sign = 2 * y - 1
    return torch.stack([sign + normal[:, 0], spurious * sign + noise * normal[:, 1]], dim=1), y


@pytest.fixture
def parts():
    return Parts


@pytest.fixture(scope="session")
def environment():
    return linear_environment
