import { type Static, Type } from 'typebox';
import type { LegEndpoint } from '../../machines/events.ts';
import { validationFailed } from '../validation.ts';
import { CallableNumberSchema, type NumberPlan, readCallable } from './phone-number.ts';

const UserIdSchema = Type.Integer({
  minimum: 1,
  maximum: 2_147_483_647,
  description: 'User whose browser is dialed, a member of the workspace. Default: the user of this request.',
});

export const BrowserEndpointSchema = Type.Object(
  {
    type: Type.Enum(['webrtc'], { description: 'Always `webrtc`.' }),
    user_id: Type.Optional(UserIdSchema),
  },
  { additionalProperties: false, examples: [{ type: 'webrtc' }] },
);

export const EndpointSchema = Type.Object(
  {
    type: Type.Enum(['phone', 'webrtc'], {
      description:
        '`phone`: a number, over the trunk of the call. `webrtc`: the browser of a user; see POST /phone/tokens.',
    }),
    number: Type.Optional(CallableNumberSchema),
    user_id: Type.Optional(UserIdSchema),
  },
  { additionalProperties: false, description: 'Endpoint to dial: a phone by its `number`, or a browser.' },
);

/** Accepts the same numbers as placements. @throws TandemError VALIDATION_FAILED */
export function readEndpoint(
  endpoint: Static<typeof EndpointSchema>,
  {
    ownUserId,
    numberPlan,
    field = 'endpoint',
  }: { ownUserId: number | null; numberPlan: NumberPlan; field?: 'endpoint' | 'to' },
): LegEndpoint {
  const invalid = (name: string, message: string) => validationFailed([{ path: `${field}.${name}`, message }]);
  const { type, number, user_id: userId } = endpoint;
  if (type === 'webrtc') {
    if (number !== undefined) throw invalid('number', 'must not be combined with type webrtc');
    const user = userId ?? ownUserId;
    if (user === null) throw invalid('user_id', 'is required, because this request has no user');
    return { type, userId: user };
  }
  if (userId !== undefined) throw invalid('user_id', 'must not be combined with type phone');
  if (number === undefined) throw invalid('number', 'is required with type phone');
  return { type, number: readCallable(`${field}.number`, number, numberPlan)! };
}
