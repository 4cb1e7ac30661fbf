/** A site with TLS on loopback, with a certificate made at run time for the name `right.example`. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { join } from "node:path";
import tls from "node:tls";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { onLoopback } from "./loopback.ts";

export interface TestCertificate {
  readonly file: string;
  readonly key: string;
  readonly certificate: string;
  remove(): void;
}

export function makeCertificate(name = "right.example"): TestCertificate {
  const folder = temporaryFolder("nearcrawl-tls-");
  const file = (part: string) => join(folder, part);
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name},IP:127.0.0.1`];
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout".split(" ");
  execFileSync(
    "openssl",
    ["req", "-x509", ...key, file("key.pem"), "-out", file("cert.pem"), ...subject, "-days", "2"],
    {
      stdio: "ignore",
    },
  );
  return {
    file: file("cert.pem"),
    key: readFileSync(file("key.pem"), "utf8"),
    certificate: readFileSync(file("cert.pem"), "utf8"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export interface SecureOrigin {
  readonly port: number;
  readonly url: string;
  /** The negotiated protocol of each connection. */
  readonly agreed: string[];
  close(): Promise<void>;
}

/** Supports HTTP/2 and HTTP/1.1. */
export async function startHttp2Origin(
  { key, certificate }: TestCertificate,
  handle: Parameters<Http2SecureServer["on"]>[1],
): Promise<SecureOrigin & { readonly sessions: ServerHttp2Session[] }> {
  const agreed: string[] = [];
  const sessions: ServerHttp2Session[] = [];
  const server = createSecureServer({ key, cert: certificate, allowHTTP1: true });
  server.on("request", handle as never);
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => {});
  });
  server.on("sessionError", () => {});
  server.on("secureConnection", (socket) => {
    agreed.push(socket.alpnProtocol || "none");
    socket.on("error", () => {});
  });
  const { port, close } = await onLoopback(server);
  return { port, url: `https://127.0.0.1:${port}`, agreed, sessions, close };
}

/** Supports HTTP/1.1 only, and records requests with their headers. */
export async function startHttps1Origin(
  { key, certificate }: Pick<TestCertificate, "key" | "certificate">,
  handle: RequestListener,
) {
  const requests: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createHttpsServer({ key, cert: certificate }, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    headers.push(request.headers);
    handle(request, response);
  });
  server.on("tlsClientError", () => {});
  const { port, close } = await onLoopback(server);
  return { port, url: `https://127.0.0.1:${port}`, requests, headers, close };
}

/** TLS with these protocols, followed by whatever `behave` does. */
export async function startRawTlsOrigin(
  { key, certificate }: TestCertificate,
  protocols: readonly string[],
  behave: (socket: tls.TLSSocket) => void,
): Promise<SecureOrigin> {
  const agreed: string[] = [];
  const server = tls.createServer({ key, cert: certificate, ALPNProtocols: [...protocols] }, (socket) => {
    agreed.push(socket.alpnProtocol || "none");
    socket.on("error", () => {});
    behave(socket);
  });
  server.on("tlsClientError", () => {});
  const { port, close } = await onLoopback(server);
  return { port, url: `https://127.0.0.1:${port}`, agreed, close };
}
