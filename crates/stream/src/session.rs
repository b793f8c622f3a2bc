//! Cards, rings and recorders run together on threads of their own.
