"""Tag denoising: propagation over visual neighbours, and how much of it helps."""

from tagkin.denoising.denoiser import TagDenoiser

__all__ = ["TagDenoiser"]
