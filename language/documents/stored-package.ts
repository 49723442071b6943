import { crc32 } from 'node:zlib';

/**
 * Builds an uncompressed ZIP archive of these parts. Each library unpacks archives in its own way, so they receive only
 * the validated parts.
 */
export function storedPackage(parts: ReadonlyMap<string, Buffer>): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [name, bytes] of parts) {
    const header = localHeader(name, bytes);
    central.push(centralHeader(header, { name, offset }));
    local.push(header, Buffer.from(name), bytes);
    offset += header.length + Buffer.byteLength(name) + bytes.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(parts.size, 8);
  end.writeUInt16LE(parts.size, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...local, directory, end]);
}

const VERSION = 20;
/** Names are in UTF-8. */
const FLAGS = 0x0800;

function localHeader(name: string, bytes: Buffer): Buffer {
  const header = Buffer.alloc(30);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(VERSION, 4);
  header.writeUInt16LE(FLAGS, 6);
  header.writeUInt32LE(crc32(bytes), 14);
  header.writeUInt32LE(bytes.length, 18);
  header.writeUInt32LE(bytes.length, 22);
  header.writeUInt16LE(Buffer.byteLength(name), 26);
  return header;
}

function centralHeader(local: Buffer, { name, offset }: { name: string; offset: number }): Buffer {
  const header = Buffer.alloc(46);
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(VERSION, 4);
  local.copy(header, 6, 4, 30);
  header.writeUInt32LE(offset, 42);
  return Buffer.concat([header, Buffer.from(name)]);
}
