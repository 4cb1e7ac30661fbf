/** A relay on loopback between a crawler and its coordinator, which counts the WebSocket messages (RFC 6455) and the bytes. */
import net, { type AddressInfo } from "node:net";

/** Since its start; bytes of the TCP streams, with the handshake. */
export interface Carried {
  readonly messagesUp: number;
  readonly messagesDown: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly connections: number;
}

export interface CountingRelay {
  readonly port: number;
  carried(): Carried;
  close(): Promise<void>;
}

export async function startCountingRelay(target: URL): Promise<CountingRelay> {
  const sockets = new Set<net.Socket>();
  const counts = { messagesUp: 0, messagesDown: 0, bytesUp: 0, bytesDown: 0, connections: 0 };
  const server = net.createServer({ noDelay: true }, (client) => {
    const coordinator = net.connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    const up = new MessageCounter();
    const down = new MessageCounter();
    counts.connections += 1;
    client.on("data", (piece) => {
      counts.bytesUp += piece.length;
      counts.messagesUp += up.messagesIn(piece);
    });
    coordinator.on("data", (piece) => {
      counts.bytesDown += piece.length;
      counts.messagesDown += down.messagesIn(piece);
    });
    client.pipe(coordinator).pipe(client);
    for (const socket of [client, coordinator]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("close", () => coordinator.destroy());
    coordinator.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    carried: () => ({ ...counts }),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const endOfHandshake = Buffer.from("\r\n\r\n");
const lastPiece = 0x80;
const control = 0x08;

/** Messages in one direction: final frames, without pings, pongs and closes. */
class MessageCounter {
  #rest: Buffer = Buffer.alloc(0);
  #inHandshake = true;
  /** Of the current frame. */
  #bytesLeft = 0;

  messagesIn(piece: Buffer): number {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    if (this.#inHandshake) {
      const end = this.#rest.indexOf(endOfHandshake);
      if (end === -1) return 0;
      this.#inHandshake = false;
      this.#rest = this.#rest.subarray(end + endOfHandshake.length);
    }
    let messages = 0;
    for (;;) {
      const skipped = Math.min(this.#bytesLeft, this.#rest.length);
      this.#bytesLeft -= skipped;
      this.#rest = this.#rest.subarray(skipped);
      const frame = frameAt(this.#rest);
      if (this.#bytesLeft > 0 || frame === null) return messages;
      messages += frame.endsMessage ? 1 : 0;
      this.#bytesLeft = frame.bytes;
    }
  }
}

/** RFC 6455 section 5.2; null: its head is incomplete. */
function frameAt(bytes: Buffer): { readonly bytes: number; readonly endsMessage: boolean } | null {
  if (bytes.length < 2) return null;
  const [first, second] = [bytes[0]!, bytes[1]!];
  const short = second & 0x7f;
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
  if (bytes.length < 2 + lengthBytes) return null;
  const payload =
    lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : lengthBytes === 2 ? bytes.readUInt16BE(2) : short;
  const mask = second & 0x80 ? 4 : 0;
  return {
    bytes: 2 + lengthBytes + mask + payload,
    endsMessage: (first & lastPiece) !== 0 && (first & control) === 0,
  };
}
