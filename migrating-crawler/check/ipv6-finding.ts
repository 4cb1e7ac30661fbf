/** Whether this machine has IPv6 that leads anywhere. Nothing is sent: a UDP socket's connect only picks a route. */
import { createSocket } from "node:dgram";
import { type Finding, mend, note, ok } from "./finding.ts";

/** k.root-servers.net, which is anycast from everywhere. */
const farAddress = "2001:7fd::1";

/** `isWanted`: the setting `ipv6`. `hasRoute`: what `hasIpv6Route` finds. */
export async function ipv6Finding(
  isWanted: boolean,
  hasRoute: () => Promise<boolean> = hasIpv6Route,
): Promise<Finding> {
  const works = await hasRoute();
  if (isWanted && works) return ok("ipv6", "there is a route.");
  if (isWanted)
    return mend(
      "ipv6",
      "there is no route to the Internet over IPv6: set ipv6 = false in settings.toml, or ask for one.",
    );
  if (works)
    return note(
      "ipv6",
      "there is a route, but ipv6 is false in settings.toml: set it to true to crawl sites over it, too.",
    );
  return ok("ipv6", "not used, and there is no route.");
}

function hasIpv6Route(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp6");
    const done = (works: boolean) => {
      socket.close();
      resolve(works);
    };
    socket.once("error", () => done(false));
    socket.connect(53, farAddress, () => {
      const { address } = socket.address();
      done(/^[23]/.test(address));
    });
  });
}
