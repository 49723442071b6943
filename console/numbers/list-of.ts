/** Mantine joins the values of multiple inputs with commas. A value can be a pasted list. */
export function listOf(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,;]+/).filter((item) => item !== '');
}
