/** What a crawler's welcome says about itself and the sites that it will meet. */
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { userAgentOf } from "#protocol/user-agent";
import { publishedKeySet } from "../../place/crawlers/published-key-set.ts";
import type { Arrival, WelcomeExtras } from "./gateway-settings.ts";

export interface IntroductionSettings {
  readonly userAgent: string;
  readonly publicUrl: string | null;
  readonly signRequests: boolean;
}

/** How a crawler identifies itself to sites; only one with a key of its own can sign. */
export function introductionOf(
  { hello, publicKey }: Pick<Arrival, "hello" | "publicKey">,
  config: IntroductionSettings,
): Pick<WelcomeExtras, "userAgent" | "signatureAgent" | "signingKeys"> {
  const signatureAgent = publishedKeySet(config);
  const signs = config.signRequests && publicKey !== null;
  return {
    ...(hello.contact === undefined ? {} : { userAgent: userAgentOf(config.userAgent, hello.contact) }),
    ...(signs && signatureAgent !== null
      ? { signatureAgent, ...(hello.signingKeys && { signingKeys: true }) }
      : {}),
  };
}

/** Lets a partner see under which address others see the crawler. */
export function seenFrom({
  remoteAddress,
}: Pick<Arrival, "remoteAddress">): Pick<WelcomeExtras, "seenAddress"> {
  const address = parseAddress(remoteAddress);
  return address === null ? {} : { seenAddress: formatAddress(unmapAddress(address)) };
}
