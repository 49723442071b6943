/** A fake with only the members that a test uses. The compiler checks those; all others are undefined. */
export function partial<T extends object>(members: NoInfer<Partial<T>>): T {
  return members as T;
}
