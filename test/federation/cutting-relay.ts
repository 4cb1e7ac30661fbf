/** A relay on loopback that cuts each connection after so many bytes, whichever way they go. */
import net, { type AddressInfo } from "node:net";

export interface CuttingRelay {
  readonly url: string;
  readonly cuts: () => number;
  close(): Promise<void>;
}

/** `bytesOfNext`: how many bytes the next connection carries; infinity: it is not cut. */
export async function startCuttingRelay(
  targetPort: number,
  bytesOfNext: () => number,
): Promise<CuttingRelay> {
  const sockets = new Set<net.Socket>();
  let cuts = 0;
  const server = net.createServer((client) => {
    const target = net.connect({ port: targetPort, host: "127.0.0.1" });
    let left = bytesOfNext();
    const carry = (from: net.Socket, to: net.Socket) =>
      from.on("data", (piece) => {
        if (left < 0) return;
        to.write(piece.subarray(0, Math.min(left, piece.length)));
        left -= piece.length;
        if (left >= 0) return;
        cuts += 1;
        // What was written before goes out first: the other side sees a message that stops.
        to.end(() => [client, target].forEach((socket) => void socket.destroy()));
      });
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
    }
    carry(client, target);
    carry(target, client);
    client.on("close", () => target.destroy());
    target.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: () => cuts,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
