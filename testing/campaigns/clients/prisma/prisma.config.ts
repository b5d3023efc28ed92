// Where Prisma's tools find the schema.
import { defineConfig } from 'prisma/config';
export default defineConfig({ schema: 'schema.prisma', datasource: { url: 'mysql://nobody@localhost/nothing' } });
