import { Radio, Stack } from '@mantine/core';
import { type Role, useMay } from '../app/session.ts';
import { membersText, peopleText as text } from '../text/people.ts';

/** Only owners can assign the role owner. The current role stays available. */
export function RoleField({ current }: { current: Role }) {
  const may = useMay();
  const roles = (Object.keys(text.roles) as Role[]).filter(
    (each) => each !== 'owner' || may.own || current === 'owner',
  );
  return (
    <Radio.Group name="role" label={membersText.role} defaultValue={current}>
      <Stack gap="xs" mt="xs">
        {roles.map((each) => (
          <Radio key={each} value={each} label={text.roles[each]} description={text.roleHints[each]} />
        ))}
      </Stack>
    </Radio.Group>
  );
}
