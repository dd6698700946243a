"""OTP on trio against trio itself, the BEAM and its predecessors."""
