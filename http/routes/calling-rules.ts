import { inTransaction } from '../../storage/database.ts';
import { getCallingRules, updateCallingRules } from '../../storage/queries/calling-rules.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import {
  CallingRulesPatch,
  CallingRulesSchema,
  presentCallingRules,
  readCallingRules,
} from '../schemas/calling-rules.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

const TAGS = ['calling rules'];

/** storage/queries/call-permission.ts enforces the limits. */
export function callingRulesRoutes(app: HttpApp, { sql, callingLimits, now }: HttpContext): void {
  app.get(
    '/dialer/calling-rules',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getCallingRules',
        summary: 'Get the calling rules',
        description:
          'Returns which calls of the workspace are rejected: by spend, prefix, rate and time of day, beside its do-not-call list. Tandem extension.',
        response: { 200: successOf(CallingRulesSchema, 'The calling rules.'), ...REFUSALS },
      },
    },
    async (request) => {
      const rules = await getCallingRules(sql, principalOf(request).workspaceId);
      return success(presentCallingRules(rules, callingLimits));
    },
  );

  app.patch(
    '/dialer/calling-rules',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'updateCallingRules',
        summary: 'Change the calling rules',
        description:
          'Changes the fields you send, for calls that are placed and parties that are added from now on. Calls in progress continue. Limits of the operator apply as well. Admins and owners only. Written to the audit log. Tandem extension.',
        body: CallingRulesPatch,
        response: { 200: successOf(CallingRulesSchema, 'The calling rules were saved.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const patch = readCallingRules(request.body);
      const at = now();
      const saved = await inTransaction(sql, async (tx) => {
        const rules = await updateCallingRules(tx, { workspaceId, patch, now: at });
        await recordAction(tx, request, {
          action: 'calling_rules.updated',
          target: { type: 'workspace', id: workspaceId },
          details: request.body,
          now: at,
        });
        return rules;
      });
      return success(presentCallingRules(saved, callingLimits));
    },
  );
}
