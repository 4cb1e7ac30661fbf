/**
 * Counts what the crawler's connections carry, both ways: the bytes of every socket, below TLS, so handshakes,
 * headers and framing are in it. What goes another way (DNS, ICMP) is added by those who send it.
 */
import type net from "node:net";

export class WireMeter {
  readonly #open = new Set<net.Socket>();
  #closedBytes = 0;

  /** The TCP socket itself, not one for TLS on top of it. */
  watch(socket: net.Socket): void {
    if (this.#open.has(socket)) return;
    this.#open.add(socket);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#closedBytes += carriedBy(socket);
    });
  }

  add(bytes: number): void {
    this.#closedBytes += bytes;
  }

  get openConnections(): number {
    return this.#open.size;
  }

  /** Since the meter was made. */
  carriedBytes(): number {
    let bytes = this.#closedBytes;
    for (const socket of this.#open) bytes += carriedBy(socket);
    return bytes;
  }
}

const carriedBy = (socket: net.Socket) => socket.bytesRead + socket.bytesWritten;
