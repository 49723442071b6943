import { inTransaction, type Sql } from './database.ts';
import { hashPassword } from './passwords.ts';
import { fingerprintOf, mintApiKey } from './queries/api-key-secret.ts';
import { createApiKey, listApiKeys } from './queries/api-keys.ts';
import { bootstrapWorkspace } from './queries/workspaces.ts';

export interface BootstrapOptions {
  ownerEmail: string | null;
  ownerPassword: string | null;
  /** Becomes a key of the owner. Null: a key is generated if the workspace has none. */
  apiKey: string | null;
}

export interface Bootstrapped {
  workspaceId: string;
  userId: number;
  /** Shown to the operator once; only its hash is stored. */
  mintedApiKey: string | null;
}

/** Creates the first workspace, its owner and a key. Safe to run on every start. */
export async function bootstrap(sql: Sql, options: BootstrapOptions): Promise<Bootstrapped> {
  const passwordHash = options.ownerPassword === null ? null : await hashPassword(options.ownerPassword);
  return await inTransaction(sql, async (tx) => {
    const now = new Date();
    const { workspace, user } = await bootstrapWorkspace(tx, {
      name: 'Default',
      plan: 'enterprise',
      owner: { email: options.ownerEmail ?? 'owner@localhost', passwordHash },
      now,
    });
    const { total } = await listApiKeys(tx, { workspaceId: workspace.id }, { page: 1, limit: 1 });
    const mintedApiKey = options.apiKey === null && total === 0 ? mintApiKey() : null;
    const apiKey = options.apiKey ?? mintedApiKey;
    if (apiKey !== null) {
      await createApiKey(tx, {
        workspaceId: workspace.id,
        createdByUserId: user.id,
        name: 'Owner',
        ...fingerprintOf(apiKey),
        now,
      });
    }
    return { workspaceId: workspace.id, userId: user.id, mintedApiKey };
  });
}
