/**
 * Checks whether and how the coordinator is reachable: directly or through a proxy from the environment, whether TLS ends at
 * the coordinator, how far away it is, and whether the two clocks agree. One HEAD request for `/` is sent, which needs no key.
 */

import http from "node:http";
import type net from "node:net";
import { foreignDateMs } from "#core/foreign-dates";
import { hostInUrl } from "#core/ip/url-host";
import { mostClockErrorMs } from "../membership/member.ts";
import { type CoordinatorRoute, openCoordinatorSocket, WrongPin } from "../net/coordinator-socket.ts";
import { type ProxyAddress, parseProxy } from "../settings/config.ts";

/** The usual proxy variables, in curl's order of precedence for TLS. */
const proxyVariables = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"];

interface CoordinatorSurvey {
  readonly findings: readonly Finding[];
  /** URL of the proxy through which the coordinator answered when the configured route had failed. Otherwise null. */
  readonly neededProxy: string | null;
}

export interface SurveySettings {
  readonly url: string;
  /** The configured route, or a direct one if none is configured. */
  readonly route: CoordinatorRoute;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Date;
}

interface Answer {
  /** Time to connect, including the proxy and TLS. */
  readonly connectMs: number;
  readonly clockErrorMs: number | null;
}

export async function surveyCoordinator(settings: SurveySettings): Promise<CoordinatorSurvey> {
  const { route } = settings;
  const first = await tryRoute(settings, route);
  if (!(first instanceof Error)) return { findings: answered(settings, first, null), neededProxy: null };
  for (const proxy of proxiesIn(settings.env)) {
    const answer = await tryRoute(settings, { ...route, proxy: parseProxy(proxy) });
    if (!(answer instanceof Error)) {
      return { findings: answered(settings, answer, proxy), neededProxy: proxy };
    }
  }
  return { findings: [unreached(settings, first)], neededProxy: null };
}

/** Describes a proxy without its password. */
const proxyInWords = ({ type, host, port }: ProxyAddress): string => `${type}://${hostInUrl(host)}:${port}`;

async function tryRoute(settings: SurveySettings, route: CoordinatorRoute): Promise<Answer | Error> {
  const url = new URL(settings.url);
  const startedMs = performance.now();
  try {
    const socket = await openCoordinatorSocket(url, route);
    const connectMs = performance.now() - startedMs;
    return { connectMs, clockErrorMs: await clockError(url, socket, { ...settings, route }) };
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Returns null when the answer has no Date header. That header is precise only to the second (RFC 9110 section 6.6.1). */
function clockError(url: URL, socket: net.Socket, settings: SurveySettings): Promise<number | null> {
  const { now, route } = settings;
  const host = url.host;
  return new Promise((resolve, reject) => {
    const asked = http.request({
      method: "HEAD",
      path: "/",
      host,
      headers: { host },
      createConnection: () => socket,
    });
    const fail = (error: Error) => {
      asked.destroy();
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(
      () => fail(new Error("the connection stood, but no HTTP answer came over it")),
      route.timeoutMs,
    );
    asked.once("error", (error) => {
      clearTimeout(timer);
      fail(error);
    });
    asked.once("response", ({ headers }) => {
      clearTimeout(timer);
      socket.destroy();
      const theirs = foreignDateMs(headers.date ?? "");
      resolve(theirs === null ? null : now().getTime() - theirs);
    });
    asked.end();
  });
}

function answered(settings: SurveySettings, answer: Answer, foundProxy: string | null): Finding[] {
  const findings = [reached(settings, answer, foundProxy)];
  if (settings.url.startsWith("wss:")) findings.push(ok("tls", trustInWords(settings.route)));
  findings.push(clockFinding(answer.clockErrorMs));
  return findings;
}

function reached({ url, route }: SurveySettings, { connectMs }: Answer, foundProxy: string | null): Finding {
  const { host } = new URL(url);
  const found = foundProxy === null ? null : parseProxy(foundProxy);
  if (found !== null) {
    return note(
      "coordinator",
      `${host} is reached only through the proxy ${proxyInWords(found)}, which the environment names: ` +
        "set it as proxy in settings.toml (join does so by itself).",
    );
  }
  const way = route.proxy === null ? "straight" : `through ${proxyInWords(route.proxy)}`;
  return ok("coordinator", `${host} is reached ${way}; a connection takes ${Math.round(connectMs)} ms.`);
}

function trustInWords({ certificatePin, ca }: CoordinatorRoute): string {
  if (certificatePin !== null) return "the certificate is the pinned one: nobody stands between.";
  return ca === undefined
    ? "the certificate is vouched for by a public authority."
    : "the certificate is vouched for by the given one.";
}

function clockFinding(errorMs: number | null): Finding {
  if (errorMs === null) return note("clock", "the coordinator's answer states no time to compare with.");
  const seconds = Math.round(Math.abs(errorMs) / 1000);
  if (Math.abs(errorMs) <= mostClockErrorMs)
    return ok("clock", `within ${Math.max(1, seconds)} s of the coordinator's.`);
  return fix(
    "clock",
    `${seconds} s ${errorMs > 0 ? "ahead of" : "behind"} the coordinator's: set it, and let it be kept by NTP (\`timedatectl set-ntp true\`).`,
  );
}

function unreached({ url, route, env }: SurveySettings, error: Error): Finding {
  const { hostname, port } = new URL(url);
  if (error instanceof WrongPin) return fix("tls", `${error.message}.`);
  if (isUntrusted((error as NodeJS.ErrnoException).code)) {
    return fix(
      "tls",
      `the certificate that ${hostname} showed is not trusted (${error.message}): a proxy or firewall of ` +
        "yours may open TLS on the way; ask for an exception for this host.",
    );
  }
  const tried = proxiesIn(env).length > 0 ? ", nor through the proxies that the environment names" : "";
  const words = `${hostname} cannot be reached${tried} (${error.message}).`;
  if (route.proxy !== null)
    return fix("coordinator", `${words} Look at proxy and coordinatorProxy in settings.toml.`);
  return fix(
    "coordinator",
    `${words} Ask your network's people to let this machine open TCP connections to ${hostname} port ` +
      `${port || "443"} (outbound only, TLS), or which proxy to name in settings.toml.`,
  );
}

/** Node's codes for invalid certificate dates, names and signatures. */
const isUntrusted = (code = "") => /CERT|SELF_SIGNED|UNABLE_TO/.test(code);

function proxiesIn(env: SurveySettings["env"]): string[] {
  const named = proxyVariables.flatMap((name) => (env[name] ? [proxyUrl(env[name])] : []));
  return [...new Set(named)].filter((proxy) => parseProxy(proxy) !== null).slice(0, 3);
}

/** Proxy variables may also hold `proxy.example:3128` or `socks5h://`. */
function proxyUrl(text: string): string {
  return text.includes("://") ? text.replace(/^socks5h:/, "socks5:") : `http://${text}`;
}

export interface Finding {
  /** The subject of the check, such as `clock`. */
  readonly subject: string;
  /**
   * `ok`: nothing to do. `note`: works, but there is something worth knowing. `fix`: the crawler cannot work well until this
   * is fixed.
   */
  readonly state: "ok" | "note" | "fix";
  readonly words: string;
}

export const ok = (subject: string, words: string): Finding => ({ subject, state: "ok", words });
export const note = (subject: string, words: string): Finding => ({ subject, state: "note", words });
export const fix = (subject: string, words: string): Finding => ({ subject, state: "fix", words });
