/** Archives that no tar program would write. */
export interface ArchivedEntry {
  name: string;
  content?: string | Uint8Array;
  /** `0` file (default), `5` folder, `2` symbolic link, `L` long name. */
  type?: string;
  linkTo?: string;
  claimedBytes?: number;
}

export function tarOf(entries: readonly ArchivedEntry[]): Buffer<ArrayBuffer> {
  return Buffer.concat([...entries.map(encodeEntry), Buffer.alloc(1024)]);
}

function encodeEntry({ name, content = '', type = '0', linkTo = '', claimedBytes }: ArchivedEntry): Buffer {
  const body = Buffer.from(content);
  const header = Buffer.alloc(512);
  header.write(name, 0, 100, 'utf8');
  header.write('0000644\0', 100, 'latin1');
  header.write(`${(claimedBytes ?? body.length).toString(8).padStart(11, '0')}\0`, 124, 'latin1');
  header.write(type, 156, 'latin1');
  header.write(linkTo, 157, 100, 'utf8');
  header.write('ustar\x0000', 257, 'latin1');
  header.write('        ', 148, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}
