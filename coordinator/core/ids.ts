/**
 * Branded identifiers, so that a crawler's number cannot be passed for a subnet's. All are integer keys of the table that
 * they are named after. Hashes are decimal strings of a signed 64-bit number, which fits Postgres' bigint but not
 * JavaScript's number.
 */
declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

export type SubnetId = Branded<number, "SubnetId">;
export type HolderId = Branded<number, "HolderId">;
export type CrawlerId = Branded<number, "CrawlerId">;
export type RoundId = Branded<number, "RoundId">;
export type LeaseId = Branded<string, "LeaseId">;
export type HostHash = Branded<string, "HostHash">;
export type UrlHash = Branded<string, "UrlHash">;

export const asSubnetId = (value: number): SubnetId => value as SubnetId;
export const asHolderId = (value: number): HolderId => value as HolderId;
export const asCrawlerId = (value: number): CrawlerId => value as CrawlerId;
export const asRoundId = (value: number): RoundId => value as RoundId;
export const asLeaseId = (value: string): LeaseId => value as LeaseId;
