/**
 * A relay on loopback that counts every byte of a client's TCP connections in both directions, independently of the
 * client.
 */
import net from "node:net";
import { onLoopback } from "./loopback.ts";

export interface CountingRelay {
  readonly port: number;
  /** Bytes from and to the client so far. */
  carriedBytes(): number;
  close(): Promise<void>;
}

export async function startCountingRelay(
  targetPort: number,
  targetAddress = "127.0.0.1",
): Promise<CountingRelay> {
  let carried = 0;
  const server = net.createServer((client) => {
    const target = net.connect({ port: targetPort, host: targetAddress });
    for (const socket of [client, target]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
    }
    client.on("data", (piece) => {
      carried += piece.length;
      if (!target.write(piece)) client.pause();
    });
    target.on("drain", () => client.resume());
    // Counts when the kernel has accepted the bytes, not while they wait here for a client that does not read.
    target.on("data", (piece) => {
      const isTaken = client.write(piece, (error) => {
        if (!error) carried += piece.length;
      });
      if (!isTaken) target.pause();
    });
    client.on("drain", () => target.resume());
    client.on("close", () => target.destroy());
    target.on("close", () => client.end());
  });
  return { ...(await onLoopback(server)), carriedBytes: () => carried };
}
