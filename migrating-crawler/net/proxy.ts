/**
 * Connects to an address through the partner's proxy by HTTP CONNECT (RFC 9110 section 9.3.6) or SOCKS5 (RFC 1928). The proxy
 * gets the checked address, never the name, so that it cannot resolve the name differently. The reported time runs from the
 * request to the proxy's answer, which is the target's handshake as the proxy saw it.
 */
import type net from "node:net";
import type { SocksClient } from "socks";
import { hostInUrl, isHostName } from "#core/ip/url-host";
import { Failure } from "../core/failure.ts";
import type { ProxyAddress } from "../settings/config.ts";
import { Destination, dialTcp } from "./dial.ts";

const maxAnswerBytes = 8192;

interface ProxyTarget {
  readonly address: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly watch?: ((socket: net.Socket) => void) | undefined;
}

/** What a proxy reported about the target. `answerMs` is the time from the request to the proxy's answer. */
export class ProxyRefusal extends Failure {
  readonly answerMs: number;

  constructor(code: "connect-refused" | "connect-unreachable" | "connect-timeout", answerMs: number) {
    super(code, `the proxy reports: ${code.replace("connect-", "")}`);
    this.answerMs = answerMs;
  }
}

export async function connectThroughProxy(
  proxy: ProxyAddress,
  target: ProxyTarget,
): Promise<{ readonly socket: net.Socket; readonly connectMs: number }> {
  // The address becomes part of the request line without escaping.
  if (!isHostName(target.address.replace(/\.$/, ""))) {
    throw new Failure("internal", "what to connect to is neither an address nor a host's name");
  }
  const askSite = proxy.type === "http" ? askHttp : await socksAsking();
  const socket = await reachProxy(proxy, target.timeoutMs);
  target.watch?.(socket);
  const deadline = setTimeout(
    () => socket.destroy(new Failure("connect-timeout", "the proxy did not answer in time")),
    target.timeoutMs,
  );
  try {
    return { socket, connectMs: await askSite(socket, proxy, target) };
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(deadline);
  }
}

async function reachProxy({ host, port }: ProxyAddress, timeoutMs: number): Promise<net.Socket> {
  try {
    return (await dialTcp(Destination.namedByPartner(host, port), timeoutMs)).socket;
  } catch (error) {
    const words = `the proxy ${host}:${port} cannot be reached: ${(error as Error).message}`;
    throw new Failure("proxy", words, { cause: error });
  }
}

async function askHttp(socket: net.Socket, proxy: ProxyAddress, target: ProxyTarget): Promise<number> {
  const authority = `${hostInUrl(target.address)}:${target.port}`;
  const startedMs = performance.now();
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization(proxy)}\r\n`);
  const { head, answeredMs } = await readHead(socket);
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
  if (status === undefined) throw new Failure("proxy", "the proxy's answer to CONNECT is not HTTP");
  if (status.startsWith("2")) return answeredMs - startedMs;
  const said = /^x-proxy-error:[ \t]*(refused|unreachable|timeout)[ \t]*$/im.exec(head)?.[1]?.toLowerCase();
  if (said === undefined) throw new Failure("proxy", `the proxy answered CONNECT with ${status}`);
  throw new ProxyRefusal(`connect-${said as "refused" | "unreachable" | "timeout"}`, answeredMs - startedMs);
}

function authorization(proxy: ProxyAddress): string {
  if (proxy.user === null) return "";
  const secret = Buffer.from(`${proxy.user}:${proxy.password ?? ""}`).toString("base64");
  return `Proxy-Authorization: Basic ${secret}\r\n`;
}

/** Reads up to the empty line, and returns later bytes to the socket. */
function readHead(socket: net.Socket): Promise<{ readonly head: string; readonly answeredMs: number }> {
  return new Promise((resolve, reject) => {
    let answeredMs = 0;
    let got = Buffer.alloc(0);
    const stop = () => {
      socket.off("data", onData).off("error", onError).off("close", onClose);
      socket.pause();
    };
    const onData = (chunk: Buffer) => {
      if (answeredMs === 0) answeredMs = performance.now();
      got = Buffer.concat([got, chunk]);
      const end = got.indexOf("\r\n\r\n");
      if (end < 0 && got.length <= maxAnswerBytes) return;
      stop();
      if (end < 0 || end > maxAnswerBytes)
        return reject(new Failure("proxy", `the proxy's answer is longer than ${maxAnswerBytes} bytes`));
      if (got.length > end + 4) socket.unshift(got.subarray(end + 4));
      resolve({ head: got.subarray(0, end).toString("latin1"), answeredMs });
    };
    const onError = (error: Error) => {
      stop();
      reject(error instanceof Failure ? error : new Failure("proxy", error.message, { cause: error }));
    };
    const onClose = () => {
      stop();
      reject(new Failure("proxy", "the proxy closed the connection without an answer"));
    };
    socket.on("data", onData).on("error", onError).on("close", onClose);
  });
}

/** Must be loaded before connecting, because a socket error during the import would go unhandled. */
async function socksAsking(): Promise<typeof askHttp> {
  const { SocksClient } = await import("socks");
  return (socket, proxy, target) => askSocks(SocksClient, { socket, proxy, target });
}

async function askSocks(
  client: typeof SocksClient,
  asked: { readonly socket: net.Socket; readonly proxy: ProxyAddress; readonly target: ProxyTarget },
): Promise<number> {
  const { socket, proxy, target } = asked;
  const startedMs = performance.now();
  try {
    await client.createConnection({
      proxy: {
        host: proxy.host,
        port: proxy.port,
        type: 5,
        ...(proxy.user === null ? {} : { userId: proxy.user, password: proxy.password ?? "" }),
      },
      command: "connect",
      destination: { host: target.address, port: target.port },
      timeout: target.timeoutMs,
      existing_socket: socket,
    });
    return performance.now() - startedMs;
  } catch (error) {
    throw socksFailure(error, performance.now() - startedMs);
  }
}

/** Maps the replies of RFC 1928 section 6, in the wording of the socks package. */
function socksFailure(error: unknown, answerMs: number): Failure {
  if (error instanceof Failure) return error;
  const words = error instanceof Error ? error.message : String(error);
  if (words.includes("ConnectionRefused")) return new ProxyRefusal("connect-refused", answerMs);
  if (/HostUnreachable|NetworkUnreachable/.test(words)) {
    return new ProxyRefusal("connect-unreachable", answerMs);
  }
  if (/TTLExpired|timed out/i.test(words)) return new ProxyRefusal("connect-timeout", answerMs);
  return new Failure("proxy", words, { cause: error });
}
