/** Combines the host's settings and the membership's pin into the route to the coordinator. */
import { readFileSync } from "node:fs";
import { isLoopbackHost } from "#protocol/invitation";
import type { Membership } from "../core/membership.ts";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { type CrawlerConfig, type ProxyAddress, parseProxy } from "../settings/config.ts";

/** The timeout of each phase: connecting, the proxy's answer and TLS. */
const timeoutMs = 20_000;

type RouteSettings = Pick<
  CrawlerConfig,
  "coordinatorUrl" | "coordinatorProxy" | "proxy" | "coordinatorCertificateFile"
>;

/** `membership` is null when the key was set by hand; its certificate file may pin. */
export function coordinatorRoute(config: RouteSettings, membership: Membership | null): CoordinatorRoute {
  const { coordinatorCertificateFile: file } = config;
  return {
    certificatePin: membership?.certificatePin ?? null,
    ca: file === null ? undefined : readFileSync(file, "utf8"),
    proxy: linkProxy(config),
    timeoutMs,
  };
}

/** `as-sites` uses the sites' proxy, but never to reach this machine itself. */
function linkProxy({ coordinatorProxy, proxy, coordinatorUrl }: RouteSettings): ProxyAddress | null {
  if (coordinatorProxy === "none") return null;
  if (coordinatorProxy !== "as-sites") return parseProxy(coordinatorProxy);
  return proxy === null || isLoopbackHost(new URL(coordinatorUrl).hostname) ? null : parseProxy(proxy);
}
