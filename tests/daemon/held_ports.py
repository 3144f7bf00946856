"""Ports that a test holds for servers that start later, or again."""

import socket


def held_port(host="127.0.0.1"):
    """A bound socket that holds a free port until it is closed: the kernel gives the port to no
    other process, and a process that names the port can listen there, also several times in turn,
    because all these sockets have SO_REUSEADDR and the one that holds the port does not listen."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    return holder
