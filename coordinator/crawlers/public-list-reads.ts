/** The fleet as sites may know it, so that they can tell whether a request is ours. */
export interface FleetOutside {
  /**
   * Public addresses that crawlers are or were lately seen to connect from, save those of crawlers whose partner wishes
   * otherwise; in their order.
   */
  addresses(now: Date): Promise<string[]>;
  /** Ed25519 public keys of crawlers that are not shut out: 32 bytes in base64url each. */
  publicKeys(): Promise<string[]>;
}
