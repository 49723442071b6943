/**
 * Reads the mnemonics of a voice's phonemes from eSpeak NG's `phontab`: the number of tables, and for each the number
 * of its phonemes, its base table, its name, and the phonemes, 16 bytes each, which begin with the mnemonic.
 */
export function mnemonicsOfTable(phontab: Buffer, name: string): string[] {
  const tables: { name: string; base: number; mnemonics: string[] }[] = [];
  let offset = 4;
  for (let table = 0; table < phontab[0]!; table++) {
    const count = phontab[offset]!;
    const base = phontab[offset + 1]!;
    const tableName = textAt(phontab, offset + 4, 32);
    offset += 36;
    const mnemonics: string[] = [];
    for (let phoneme = 0; phoneme < count; phoneme++, offset += 16) mnemonics.push(textAt(phontab, offset, 4));
    tables.push({ name: tableName, base, mnemonics });
  }
  const mnemonics = new Set<string>();
  // The language's own phonemes precede those of its base tables. Tables count from 1, and 0 ends the chain.
  for (let index = tables.findIndex((table) => table.name === name); index >= 0; index = tables[index]!.base - 1) {
    for (const mnemonic of tables[index]!.mnemonics) mnemonics.add(mnemonic);
  }
  return [...mnemonics].filter((mnemonic) => /^[A-Za-z0-9@&?][\x21-\x7e]*$/.test(mnemonic));
}

function textAt(bytes: Buffer, start: number, length: number): string {
  return bytes.toString('latin1', start, start + length).replace(/\0.*$/s, '');
}
