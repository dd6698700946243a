"""Supervised actors on trio, for programs that run AI coding agents.

What is here today is the foundation, `sessionmgr.otp`: supervisors and actors with the rules of
Erlang's OTP in the shapes of Python. The names at this level are for sessions with agents.
"""
