"""The front: HTTP, SSE and WebSocket. Decodes, authorises, calls one thing of the bus, and encodes its answer."""
