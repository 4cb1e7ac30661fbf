/** Elements of the registries' XML files, and the net blocks of ARIN's. */

export function element(name: string, text: string): string {
  return `<${name}>${escapeXml(text)}</${name}>`;
}

export function escapeXml(text: string): string {
  if (!/[&<>]/.test(text)) return text;
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Its texts stand as they are: addresses and codes need no escaping. */
export interface NetBlock {
  readonly startAddress: string;
  readonly endAddress: string;
  /** Null where the range is no CIDR block. */
  readonly prefixLength: number | null;
  /** ARIN's files spell it in both ways. */
  readonly lengthName: "cidrLength" | "cidrLenth";
  /** ARIN's net type: `A` allocation, `S` reassignment, … */
  readonly type: string;
}

export function netBlockText(block: NetBlock): string {
  const { prefixLength, lengthName, endAddress, startAddress, type } = block;
  const digits = prefixLength !== null && prefixLength < 10 ? `0${prefixLength}` : `${prefixLength}`;
  const length = prefixLength === null ? "" : `<${lengthName}>${digits}</${lengthName}>`;
  return `<netBlock>${length}<endAddress>${endAddress}</endAddress><startAddress>${startAddress}</startAddress><type>${type}</type></netBlock>`;
}
