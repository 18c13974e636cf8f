"""Tag denoising: propagation over visual neighbours."""

from tagkin.denoising.denoiser import TagDenoiser

__all__ = ["TagDenoiser"]
