/** A server on loopback that ends with the test, with all its connections. */
import type { AddressInfo, Server, Socket } from "node:net";
import { atEnd } from "../../support/at-end.ts";

export async function onLoopback(server: Server, address = "127.0.0.1") {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  atEnd(close);
  return { port: (server.address() as AddressInfo).port, close };
}
