import { inTransaction } from '../../../storage/database.ts';
import { listClaims, type NumberClaim, verifyNumber } from '../../../storage/queries/number-claims.ts';
import { type Command, CommandError, defineAction } from '../command.ts';
import { auditOperator, withDatabase } from '../operator-database.ts';
import { fields, table } from '../terminal.ts';

const claims = defineAction({
  summary: 'List the numbers that trunks claim and that are not verified, oldest first.',
  run: async () =>
    await withDatabase(async (sql) => {
      const rows = await listClaims(sql);
      const text = table(
        ['NUMBER', 'TRUNK', 'TRUNK ID', 'WORKSPACE', 'SINCE'],
        rows.map((row) => [row.e164, row.trunkName, row.trunkId, row.workspaceName, row.createdAt.toISOString()]),
        'Every number that a trunk lists is verified.',
      );
      return { data: { claims: rows.map(presentClaim) }, text };
    }),
});

const verify = defineAction({
  summary: 'Verify that the owner of a trunk may present a number, so that it can be rented.',
  parameters: [{ name: 'NUMBER', about: 'the number, in +E.164' }],
  options: { trunk: { value: 'ID', about: 'the trunk; required when several trunks claim the number' } },
  run: async ({ values, arguments: [e164 = ''] }) =>
    await withDatabase(async (sql) => {
      const all = await listClaims(sql, { e164 });
      const candidates = values.trunk === undefined ? all : all.filter(({ trunkId }) => trunkId === values.trunk);
      const [claim] = candidates;
      if (claim === undefined) {
        const message = `no such trunk claims ${e164}: tandem numbers claims lists all claims.`;
        throw new CommandError('NUMBER_NOT_FOUND', message);
      }
      if (candidates.length > 1) {
        const trunks = candidates.map(({ trunkId }) => trunkId).join(', ');
        throw new CommandError('AMBIGUOUS_TRUNK', `several trunks claim ${e164}: name one with --trunk, of ${trunks}.`);
      }
      const now = new Date();
      const { trunkId, workspaceId } = claim;
      await inTransaction(sql, async (tx) => {
        await verifyNumber(tx, { e164, trunkId, by: 'operator', now });
        const target = { type: 'number', id: e164 };
        const details = { trunk_id: trunkId };
        await auditOperator(tx, { workspaceId, action: 'number.verified', target, details, now });
      });
      const text = fields([
        ['number', e164],
        ['trunk', claim.trunkName],
        ['workspace', claim.workspaceName],
        ['', 'The workspace can rent the number now.'],
      ]);
      return { data: { e164, outbound_trunk_id: trunkId, workspace_id: workspaceId, verified: true }, text };
    }),
});

export const numbersCommand: Command = { actions: { claims, verify } };

function presentClaim({ e164, trunkId, workspaceId, createdAt }: NumberClaim) {
  return { e164, outbound_trunk_id: trunkId, workspace_id: workspaceId, created_at: createdAt.toISOString() };
}
