/** The media type of a Content-Type header without its parameters, in lower case (WHATWG MIME Sniffing, "essence"). */
export function mediaType(contentType: string): string {
  return contentType.split(";", 1)[0]!.trim().toLowerCase();
}
