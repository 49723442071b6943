/** Removes control and bidirectional formatting characters, which could disguise a name. */
export function undisguised(name: string): string {
  return name.replace(/[\p{Cc}\p{Bidi_C}]/gu, '');
}
