/** A gateway that leases a test's work to one crawler. */
import type { Lease } from "#protocol/lease";
import { type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";

/** Leases these URLs of a loopback host about which nothing is known. */
export function leaseOf(leaseId: string, urls: readonly string[], changes: Partial<Lease> = {}): Lease {
  return {
    ...{ leaseId, host: "127.0.0.1", addresses: ["127.0.0.1"], expiresInSeconds: 60, waitMs: 0 },
    urls: urls.map((url) => ({ url, etag: null, lastModified: null })),
    ...changes,
  };
}

type GatewayOptions = Partial<Parameters<typeof startGateway>[0]>;

/** Answers each request for work with the first of `waiting`, which tests may extend, and then with nothing. */
export async function leasingGateway(
  waiting: Lease[],
  { askAgainMs = 50, ...options }: GatewayOptions & { readonly askAgainMs?: number } = {},
): Promise<LoopbackGateway> {
  const world: LoopbackGateway = await startGateway({
    zlibSync: null,
    ...options,
    handlers: {
      async onMessage(crawlerId, message, { wireBytes }) {
        world.seen.messages.push({ crawlerId, message, wireBytes });
        if (message.type !== "crawler:ready") return;
        const leases = waiting.splice(0, 1);
        const reason = leases.length === 0 ? "nothing is due" : "";
        world.gateway.send(crawlerId, { type: "coordinator:tasks", leases, askAgainMs, reason });
      },
      ...options.handlers,
    },
  });
  return world;
}
