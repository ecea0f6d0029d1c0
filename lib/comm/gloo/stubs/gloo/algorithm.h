// Stand-in for a Gloo header that LibTorch packages leave out; see third_party/README.md.
#pragma once
