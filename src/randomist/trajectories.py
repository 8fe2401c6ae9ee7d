"""placeholder"""
PolicyLike = object
