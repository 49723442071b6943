const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Clients send anything as an id; comparing other text with a uuid column would be an error, not a miss. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
