/**
 * A relay between two processes, over TCP or a Unix socket, that can cut, stall or delay the bytes. Neither side needs code for
 * it.
 */
import { rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export type RelayMode =
  | { readonly type: "open" }
  /** Ends all connections at once, new ones too. */
  | { readonly type: "cut" }
  /** Keeps connections open and holds everything back. */
  | { readonly type: "stalled" }
  | { readonly type: "slow"; readonly delayMs: number; readonly bytesPerSecond: number }
  /** Ends each new connection after this many bytes in both directions together. */
  | { readonly type: "cut-after"; readonly bytesOfNext: () => number };

/** A port on loopback, or a Unix socket. */
type RelayEnd = number | string;

export class FaultyRelay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #mode: RelayMode = { type: "open" };
  /** Connections that `cut-after` ended. */
  cuts = 0;
  /** May be set after clients have connected. */
  target: RelayEnd | null;

  private constructor(target: RelayEnd | null) {
    this.target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** `at`: a Unix socket's file, or null for a free port on loopback. */
  static async open(target: RelayEnd | null, at: string | null = null): Promise<FaultyRelay> {
    const relay = new FaultyRelay(target);
    if (at !== null) rmSync(at, { force: true });
    await new Promise<void>((listening, failed) => {
      relay.#server.once("error", failed);
      if (at === null) relay.#server.listen(0, "127.0.0.1", listening);
      else relay.#server.listen(at, listening);
    });
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  set(mode: RelayMode): void {
    this.#mode = mode;
    for (const socket of this.#sockets) {
      if (mode.type === "cut") socket.destroy();
      else if (mode.type === "stalled") socket.pause();
      else socket.resume();
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #accept(client: Socket): void {
    if (this.#mode.type === "cut" || this.target === null) return void client.destroy();
    const way =
      typeof this.target === "number" ? connect(this.target, "127.0.0.1") : connect({ path: this.target });
    const left = { bytes: this.#mode.type === "cut-after" ? this.#mode.bytesOfNext() : Infinity };
    for (const [socket, other] of [
      [client, way],
      [way, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      this.#carry(socket, other, left);
    }
    if (this.#mode.type === "stalled") for (const socket of [client, way]) socket.pause();
  }

  #carry(from: Socket, to: Socket, left: { bytes: number }): void {
    from.on("data", (piece: Buffer) => {
      const mode = this.#mode;
      if (left.bytes < 0) return;
      left.bytes -= piece.length;
      if (left.bytes < 0) {
        this.cuts += 1;
        // `end` flushes earlier writes, so that the other side sees a message cut in the middle.
        to.end(piece.subarray(0, left.bytes + piece.length), () => void to.destroy());
        return;
      }
      // At most one piece waits, so that the sender feels the slow line.
      const waitMs = mode.type === "slow" ? mode.delayMs + (1000 * piece.length) / mode.bytesPerSecond : 0;
      const isTaken = waitMs === 0 && to.write(piece);
      if (isTaken) return;
      from.pause();
      const goOn = () => {
        if (this.#mode.type !== "stalled") from.resume();
      };
      if (waitMs === 0) to.once("drain", goOn);
      else setTimeout(() => (to.write(piece) ? goOn() : to.once("drain", goOn)), waitMs);
    });
    from.on("end", () => to.end());
  }
}
