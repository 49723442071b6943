import { connect } from '../../storage/database.ts';
import { findPgvector } from '../../storage/queries/memory-vectors.ts';
import { EXTERNAL_URL, externalIsReachable } from './test-database.ts';

export const hasPgvector: boolean = (await externalIsReachable()) && (await isThere());

async function isThere(): Promise<boolean> {
  const sql = connect({ url: EXTERNAL_URL, max: 1 });
  try {
    return 'version' in (await findPgvector(sql));
  } finally {
    await sql.end({ timeout: 1 });
  }
}
