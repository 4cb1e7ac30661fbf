/**
 * Holds the reading of a socket whose bytes undici parses, without pausing undici's parser: a paused parser asserts
 * that neither the end of the connection nor its reset reaches it, and a site can send either at any time. Held,
 * the socket gives out nothing: its buffer fills, then the kernel's, then the site has to wait, and the end of the
 * connection comes after the last of its bytes.
 *
 * It also bounds what comes before a head is whole: undici counts header fields alone, neither the first line nor
 * empty lines before it.
 */
import type net from "node:net";
import { Failure } from "../net/failure.ts";

export class SocketReading {
  readonly #socket: net.Socket;
  #held = false;
  /** Given out of a head that is not whole yet; null: none is awaited. */
  #headBytes: number | null = null;

  constructor(socket: net.Socket, maxHeadBytes: number) {
    this.#socket = socket;
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      // A size of 0 takes nothing: it is how Node's streams keep themselves going.
      if (this.#held && size !== 0) return null;
      if (this.#headBytes !== null && this.#headBytes > maxHeadBytes) {
        this.#headBytes = null;
        socket.destroy(new Failure("headers-too-large", `no whole header within ${maxHeadBytes} bytes`));
        return null;
      }
      const piece: Buffer | null = read(size);
      if (this.#headBytes !== null) this.#headBytes += piece?.length ?? 0;
      return piece;
    };
  }

  /** From now on what comes is a head, to its end: until `headCame`. */
  awaitHead(): void {
    this.#headBytes = 0;
  }

  headCame(): void {
    this.#headBytes = null;
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
