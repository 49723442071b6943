import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction } from '../../storage/database.ts';
import { requireTrunkQuota } from '../../storage/queries/quotas.ts';
import { gatewaysOf } from '../../storage/queries/trunk-gateways.ts';
import { recentProbesOf } from '../../storage/queries/trunk-probes.ts';
import {
  createTrunk,
  deleteTrunk,
  getTrunk,
  listTrunks,
  type TrunkPatch,
  updateTrunk,
} from '../../storage/queries/trunks.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { defaultToEmptyBody } from '../empty-body.ts';
import { rateLimited } from '../rate-limits.ts';
import { recordAction } from '../recorded-action.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
import {
  isSips,
  presentProbe,
  presentTrunk,
  readNewTrunk,
  readTrunkPatch,
  requireTls,
  TrunkBody,
  TrunkDetailSchema,
  TrunkPatchBody,
  TrunkProbesSchema,
  TrunkSchema,
} from '../schemas/trunk.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['trunks'];
const IdParams = Type.Object({ id: Type.String({ description: 'Id of the trunk.' }) });

export function trunkRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, secrets, trunkTargets, trunkProber, limits, quotas, now } = context;

  /** Checks every host that these fields lead to. @throws TandemError TRUNK_HOST_NOT_ALLOWED */
  async function requireAllowedTargets(
    { sipUri, transport = 'udp', gateways = [] }: Pick<TrunkPatch, 'sipUri' | 'transport' | 'gateways'>,
    ownerWorkspaceId: string,
  ): Promise<void> {
    // A list of gateways includes its first one as `sipUri`.
    if (sipUri === undefined) return;
    for (const gateway of gatewaysOf({ sipUri, transport, gateways })) {
      await trunkTargets.locate({ ...gateway, ownerWorkspaceId });
    }
  }

  app.get(
    '/dialer/trunks',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'listTrunks',
        summary: 'List trunks',
        description: 'Returns the SIP trunks that the workspace can place calls over.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('trunks', TrunkSchema), 'One page of trunks.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { rows, total } = await listTrunks(sql, { workspaceId }, request.query);
      return success({ trunks: rows.map(presentTrunk), pagination: paginationOf(request.query, total) });
    },
  );

  app.post(
    '/dialer/trunks',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'createTrunk',
        summary: 'Create a trunk',
        description:
          'Adds a SIP trunk to place calls over. `numbers` become the inventory that the workspace can rent, once they are verified; numbers of the first workspace of the server are verified. The password is stored encrypted and never returned. The host of `sip_uri` must be on the public internet, unless the workspace is the first of the server, or TRUNK_ALLOW_CIDRS has the network (TRUNK_HOST_NOT_ALLOWED).',
        body: TrunkBody,
        response: { 201: successOf(TrunkSchema, 'The trunk was created.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const id = randomUUID();
      const { workspaceId } = principalOf(request);
      const fields = readNewTrunk(request.body, { trunkId: id, secrets });
      requireOwnCallerId(fields.defaultCallerId, fields.numbers);
      await requireAllowedTargets(fields, workspaceId);
      const at = now();
      const trunk = await inTransaction(sql, async (tx) => {
        await requireTrunkQuota(tx, { workspaceId, quotas, newTrunks: 1, newNumbers: fields.numbers });
        const created = await createTrunk(tx, { id, workspaceId, now: at, ...fields });
        const details = { name: created.name, sip_uri: created.sipUri };
        await recordAction(tx, request, { action: 'trunk.created', target: { type: 'trunk', id }, details, now: at });
        return created;
      });
      return reply.code(201).send(success(presentTrunk(trunk)));
    },
  );

  app.get(
    '/dialer/trunks/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'getTrunk',
        summary: 'Get a trunk',
        description: 'Returns a trunk, without its password, with the last OPTIONS requests that were sent to it.',
        params: IdParams,
        response: { 200: successOf(TrunkDetailSchema, 'The trunk.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const trunk = await getTrunk(sql, { id: request.params.id, workspaceId });
      if (trunk === null) throw trunkNotFound();
      const probes = await recentProbesOf(sql, trunk.id);
      const recent = probes.map(({ node, ...outcome }) => ({ ...presentProbe(outcome), node }));
      return success({ ...presentTrunk(trunk), recent_probes: recent });
    },
  );

  app.post(
    '/dialer/trunks/:id/probe',
    {
      config: { access: 'admin' },
      preValidation: defaultToEmptyBody,
      schema: {
        tags: TAGS,
        operationId: 'probeTrunk',
        summary: 'Probe a trunk',
        description:
          'Sends OPTIONS to each gateway of the trunk now, and returns within 5 seconds what came of them. The result counts for `reachability`, unless the trunk is disabled or `health.mode` is `none`. At most 6 times a minute for each trunk. Fails with CARRIER_LINE_DOWN while the SIP server of this node is away. Tandem extension.',
        params: IdParams,
        body: Type.Object({}, { additionalProperties: false, examples: [{}] }),
        response: { 200: successOf(TrunkProbesSchema, 'One result for each gateway.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const trunk = await getTrunk(sql, { id: request.params.id, workspaceId });
      if (trunk === null) throw trunkNotFound();
      const limit = await limits.consumeTrunkProbe(trunk.id);
      if (limit.exceeded) throw rateLimited(limit);
      const outcomes = await trunkProber.probe(trunk.id);
      return success({ trunk_id: trunk.id, probes: outcomes.map(presentProbe) });
    },
  );

  app.patch(
    '/dialer/trunks/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'updateTrunk',
        summary: 'Update a trunk',
        description:
          'Changes only the fields you send. A rented number cannot be removed from `numbers`: release it first.',
        params: IdParams,
        body: TrunkPatchBody,
        response: { 200: successOf(TrunkSchema, 'The trunk was updated.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { id } = request.params;
      const { workspaceId } = principalOf(request);
      // Passwords are sealed for the row's spelling of the id; the request's may be in capitals.
      const patch = readTrunkPatch(request.body, { trunkId: id.toLowerCase(), secrets });
      if (patch.transport !== undefined && patch.sipUri === undefined) {
        const trunk = await getTrunk(sql, { id, workspaceId });
        if (trunk !== null && isSips(trunk.sipUri)) requireTls(patch.transport);
      }
      if (patch.defaultCallerId) {
        const numbers = patch.numbers ?? (await getTrunk(sql, { id, workspaceId }))?.numbers;
        if (numbers === undefined) throw trunkNotFound();
        requireOwnCallerId(patch.defaultCallerId, numbers);
      }
      await requireAllowedTargets(patch, workspaceId);
      const at = now();
      const trunk = await inTransaction(sql, async (tx) => {
        if (patch.numbers !== undefined) {
          const newNumbers = patch.numbers;
          await requireTrunkQuota(tx, { workspaceId, quotas, newTrunks: 0, newNumbers, replacedOnTrunk: id });
        }
        const updated = await updateTrunk(tx, { id, workspaceId, patch, now: at });
        // Log only the names, because the audit log must not contain the password.
        const details = { changed: Object.keys(request.body) };
        await recordAction(tx, request, { action: 'trunk.updated', target: { type: 'trunk', id }, details, now: at });
        return updated;
      });
      return success(presentTrunk(trunk));
    },
  );

  app.delete(
    '/dialer/trunks/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'deleteTrunk',
        summary: 'Delete a trunk',
        description:
          'Deletes a trunk and its numbers. Its calls stay readable. A trunk with live calls cannot be deleted.',
        params: IdParams,
        response: {
          200: successOf(
            Type.Object({ id: Type.String({ format: 'uuid' }), deleted: Type.Literal(true) }),
            'The trunk was deleted.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      const { workspaceId } = principalOf(request);
      const at = now();
      await inTransaction(sql, async (tx) => {
        await deleteTrunk(tx, { id, workspaceId, now: at });
        await recordAction(tx, request, { action: 'trunk.deleted', target: { type: 'trunk', id }, now: at });
      });
      return success({ id, deleted: true });
    },
  );
}

/** Rejects other numbers, because placements would ignore them. */
function requireOwnCallerId(e164: string | null | undefined, numbers: readonly string[]): void {
  if (e164 && !numbers.includes(e164)) {
    throw validationFailed([{ path: 'default_caller_id', message: "must be one of the trunk's numbers" }]);
  }
}

function trunkNotFound(): TandemError {
  return new TandemError('TRUNK_NOT_FOUND', 'No trunk in this workspace has this id.');
}
