/**
 * Whether this machine has IPv6 that leads anywhere. Nothing is sent: a UDP socket's connect only picks a route, and the
 * address that it would be sent from.
 */
import { createSocket } from "node:dgram";
import type { CrawlerConfig } from "../settings/config.ts";

/** k.root-servers.net, which is anycast from everywhere. */
const farAddress = "2001:7fd::1";

export function hasIpv6Route(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp6");
    const done = (works: boolean) => {
      socket.close();
      resolve(works);
    };
    socket.once("error", () => done(false));
    socket.connect(53, farAddress, () => done(/^[23]/.test(socket.address().address)));
  });
}

/** Of a proxy's routes nothing is known: behind one, IPv6 is spoken only where the setting says so. */
export async function speaksIpv6({ ipv6, proxy }: Pick<CrawlerConfig, "ipv6" | "proxy">): Promise<boolean> {
  return ipv6 ?? (proxy === null && (await hasIpv6Route()));
}

/** Why a crawler does not speak it. */
export function withoutIpv6Words({ ipv6, proxy }: Pick<CrawlerConfig, "ipv6" | "proxy">): string {
  if (ipv6 === false) return "ipv6 is false in its settings";
  return proxy === null ? "its machine has no route for it" : "it goes through a proxy, and ipv6 is not set";
}
