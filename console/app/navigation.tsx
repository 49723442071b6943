import { NavLink, Stack, Text } from '@mantine/core';
import { Link, useRouterState } from '@tanstack/react-router';
import { PAGES } from './pages.ts';

export function Navigation() {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  return (
    <Stack gap="md">
      {[...Map.groupBy(PAGES, ({ group }) => group)].map(([group, pages]) => (
        <div key={group}>
          <Text size="xs" c="dimmed" fw={600} px="sm" pb={4}>
            {group}
          </Text>
          {pages.map(({ path: to, label, icon: Icon }) => {
            const isCurrent = path === to || path.startsWith(`${to}/`);
            return (
              <NavLink
                key={to}
                component={Link}
                to={to}
                label={label}
                leftSection={<Icon size={16} aria-hidden />}
                active={isCurrent}
                aria-current={isCurrent ? 'page' : undefined}
              />
            );
          })}
        </div>
      ))}
    </Stack>
  );
}
