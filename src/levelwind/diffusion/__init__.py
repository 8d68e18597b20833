"""One multi-way windowed join over many hosts, exactly: aligned and coordinated tuple routing.

Reference: X. Gu, P. S. Yu, H. Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007.
"""
