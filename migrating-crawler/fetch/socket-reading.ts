/**
 * Holds the reading of a socket whose bytes undici parses, without pausing undici's parser: a paused parser asserts
 * that neither the end of the connection nor its reset reaches it, and a site can send either at any time. Held,
 * the socket gives out nothing: its buffer fills, then the kernel's, then the site has to wait, and the end of the
 * connection comes after the last of its bytes.
 */
import type net from "node:net";

export class SocketReading {
  readonly #socket: net.Socket;
  #held = false;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    const read = socket.read.bind(socket);
    // A size of 0 takes nothing: it is how Node's streams keep themselves going.
    socket.read = (size?: number) => (this.#held && size !== 0 ? null : read(size));
  }

  get isHeld(): boolean {
    return this.#held;
  }

  hold(): void {
    this.#held = true;
  }

  /** From within the parser, which reads on by itself. */
  release(): void {
    this.#held = false;
  }

  /** From outside. Never at once: the parser may be at work. */
  goOn(): void {
    if (!this.#held) return;
    this.#held = false;
    process.nextTick(() => this.#socket.emit("readable"));
  }
}
