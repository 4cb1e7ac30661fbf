/** Downloads through a real operator's proxy on loopback with CONNECT (RFC 9110 section 9.3.6). */
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type CacheFolder, cacheFolder, fetchFrom, oneSource } from "./fetching.ts";
import {
  certificateFile,
  published,
  type RegistryServer,
  registryServer,
  statistics,
} from "./registry-server.ts";

interface Tunnel {
  readonly target: string;
  readonly authorization: string | undefined;
}

let cache: CacheFolder;
let registry: RegistryServer;
let proxy: Server;
let tunnels: Tunnel[];
let sockets: Socket[];
beforeEach(async () => {
  cache = cacheFolder();
  registry = await registryServer({ "/stats": published(statistics(3)) }, { secure: true });
  tunnels = [];
  sockets = [];
  proxy = createServer().on("connect", (request, client: Socket) => {
    const { authorization } = { authorization: request.headers["proxy-authorization"] };
    tunnels.push({ target: request.url ?? "", authorization });
    if (authorization !== "Basic b3Blbg==") {
      client.end("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const [host, port] = (request.url ?? "").split(":");
    const onward = connect(Number(port), host, () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      onward.pipe(client).pipe(onward);
    });
    sockets.push(client, onward);
    for (const socket of [client, onward]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => proxy.close(resolve));
  await registry.close();
  cache.remove();
});

const settingsWith = (password: string) => {
  const file = join(cache.path, "proxy-password");
  writeFileSync(file, `${password}\n`);
  const { port } = proxy.address() as AddressInfo;
  return {
    ...oneSource(`${registry.origin}/stats`),
    certificateFile,
    proxy: `http://127.0.0.1:${port}`,
    proxyAuthorizationFile: file,
    limits: { tries: 1 },
  };
};

it("arrive, authorised by the value in the named file, encrypted up to the registry", async () => {
  const results = await fetchFrom(settingsWith("Basic b3Blbg=="), { cacheFolder: cache.path });

  expect(results).toMatchObject([{ type: "fetched" }]);
  expect(tunnels).toEqual([
    { target: registry.origin.replace("https://", ""), authorization: "Basic b3Blbg==" },
  ]);
  expect(registry.requests[0]!.headers["proxy-authorization"]).toBeUndefined();
});

it("fail with the proxy's reason when it refuses, and the password is not in it", async () => {
  const [result] = await fetchFrom(settingsWith("Basic d3Jvbmc="), { cacheFolder: cache.path });

  expect(result).toMatchObject({ type: "failed", reason: expect.stringMatching(/[Pp]roxy.*407|407/) });
  expect(JSON.stringify(result)).not.toContain("d3Jvbmc");
  expect(registry.requests).toEqual([]);
});
