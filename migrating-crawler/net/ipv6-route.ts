/**
 * Finds out whether this machine has working IPv6. Nothing is sent: connecting a UDP socket only selects a route and a
 * source address.
 */
import { createSocket } from "node:dgram";
import type { CrawlerConfig } from "../settings/config.ts";

/** k.root-servers.net, an anycast address. */
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

/** The proxy's routes are unknown, so behind one IPv6 needs the setting. */
export async function speaksIpv6({ ipv6, proxy }: Pick<CrawlerConfig, "ipv6" | "proxy">): Promise<boolean> {
  return ipv6 ?? (proxy === null && (await hasIpv6Route()));
}

/** Explains why a crawler does not use IPv6. */
export function withoutIpv6Words({ ipv6, proxy }: Pick<CrawlerConfig, "ipv6" | "proxy">): string {
  if (ipv6 === false) return "ipv6 is false in its settings";
  return proxy === null ? "its machine has no route for it" : "it goes through a proxy, and ipv6 is not set";
}
