// Objection: graphs of relations inserted and loaded with joins and with queries, upsert of graphs, JSON columns
// and references, counts in subqueries, transactions.
import assert from "node:assert/strict";
import knexModule from "knex";
import {
  Model,
  raw,
  ref,
  fn,
  ForeignKeyViolationError,
  UniqueViolationError,
  NotNullViolationError,
  DataError,
  CheckViolationError,
} from "objection";
import { check, finish, server } from "./check.mjs";

const knex = knexModule({ client: "mysql2", connection: server, pool: { min: 0, max: 4 } });
Model.knex(knex);
class Person extends Model {
  static tableName = "persons";
  static jsonSchema = {
    type: "object",
    required: ["name"],
    properties: {
      id: { type: "integer" },
      name: { type: "string" },
      parentId: { type: ["integer", "null"] },
      address: { type: "object" },
    },
  };
  static get relationMappings() {
    return {
      pets: {
        relation: Model.HasManyRelation,
        modelClass: Pet,
        join: { from: "persons.id", to: "pets.ownerId" },
      },
      parent: {
        relation: Model.BelongsToOneRelation,
        modelClass: Person,
        join: { from: "persons.parentId", to: "persons.id" },
      },
      children: {
        relation: Model.HasManyRelation,
        modelClass: Person,
        join: { from: "persons.id", to: "persons.parentId" },
      },
      movies: {
        relation: Model.ManyToManyRelation,
        modelClass: Movie,
        join: {
          from: "persons.id",
          through: { from: "persons_movies.personId", to: "persons_movies.movieId", extra: ["part"] },
          to: "movies.id",
        },
      },
    };
  }
}
class Pet extends Model {
  static tableName = "pets";
  static get relationMappings() {
    return {
      owner: {
        relation: Model.BelongsToOneRelation,
        modelClass: Person,
        join: { from: "pets.ownerId", to: "persons.id" },
      },
    };
  }
}
class Movie extends Model {
  static tableName = "movies";
}
await check("schema", async () => {
  await knex.schema
    .createTable("persons", (t) => {
      t.increments("id");
      t.integer("parentId").unsigned().references("id").inTable("persons").onDelete("SET NULL").index();
      t.string("name").notNullable();
      t.integer("age").checkPositive();
      t.json("address");
    })
    .createTable("movies", (t) => {
      t.increments("id");
      t.string("title", 20).notNullable().unique();
    })
    .createTable("pets", (t) => {
      t.increments("id");
      t.integer("ownerId").unsigned().references("id").inTable("persons").onDelete("CASCADE").index();
      t.string("name");
      t.enum("species", ["dog", "cat"]);
    })
    .createTable("persons_movies", (t) => {
      t.primary(["personId", "movieId"]);
      t.integer("personId")
        .unsigned()
        .notNullable()
        .references("id")
        .inTable("persons")
        .onDelete("CASCADE");
      t.integer("movieId").unsigned().notNullable().references("id").inTable("movies").onDelete("RESTRICT");
      t.string("part");
    });
});
await check("insert of a graph, loading it", async () => {
  await Person.query().insertGraph(
    [
      {
        "#id": "a",
        name: "Ann",
        age: 50,
        address: { city: "Ulm", zips: [1, 2], geo: { x: 1.5 } },
        children: [{ name: "Kid", age: 10, pets: [{ name: "Rex", species: "dog" }] }],
        pets: [
          { name: "Tom", species: "cat" },
          { name: "Kit", species: "cat" },
        ],
        movies: [{ "#id": "m", title: "One", part: "lead" }],
      },
      { name: "Bob", age: 40, movies: [{ "#ref": "m", part: "extra" }] },
    ],
    { allowRefs: true },
  );
  for (const how of ["withGraphFetched", "withGraphJoined"]) {
    const r = await Person.query()
      [how]("[pets, children.pets, movies]")
      .where("persons.name", "Ann")
      .first();
    assert.deepEqual(
      [r.address, r.pets.map((p) => p.name).sort(), r.children[0].pets[0].name, r.movies[0].part],
      [{ city: "Ulm", zips: [1, 2], geo: { x: 1.5 } }, ["Kit", "Tom"], "Rex", "lead"],
      how,
    );
  }
});
await check("upsert of a graph", async () => {
  const ann = await Person.query().findOne({ name: "Ann" }).withGraphFetched("[pets, movies]");
  await Person.query().upsertGraph({
    id: ann.id,
    name: "Anna",
    pets: [
      { id: ann.pets[0].id, name: "Tommy" },
      { name: "Neu", species: "dog" },
    ],
  });
  assert.deepEqual(
    (await ann.$relatedQuery("pets").orderBy("id")).map((p) => p.name),
    ["Tommy", "Neu"],
  );
  await ann.$relatedQuery("movies").insert({ title: "Two", part: "x" });
  await ann.$relatedQuery("movies").patch({ part: "y" }).where("title", "Two");
  assert.equal((await ann.$relatedQuery("movies").where("title", "Two"))[0].part, "y");
  await ann.$relatedQuery("movies").unrelate().where("title", "Two");
  assert.equal(await ann.$relatedQuery("movies").resultSize(), 1);
});
await check("subqueries, related counts, exists", async () => {
  const r = await Person.query()
    .select(
      "persons.name",
      Person.relatedQuery("pets").count().as("n"),
      Person.relatedQuery("children").max("age").as("m"),
    )
    .orderBy("persons.id");
  assert.deepEqual(r.map((x) => [x.name, x.n, x.m]).sort(), [
    ["Anna", 2, 10],
    ["Bob", 0, null],
    ["Kid", 1, null],
  ]);
  assert.deepEqual(
    (
      await Person.query().whereExists(Person.relatedQuery("pets").where("species", "dog")).orderBy("name")
    ).map((p) => p.name),
    ["Anna", "Kid"],
  );
  const j = await Person.query()
    .joinRelated("parent.pets")
    .distinct("persons.name", "parent:pets.species as s")
    .orderBy("s");
  assert.deepEqual(
    j.map((x) => x.s),
    ["dog", "cat"],
  );
  assert.equal(
    (await Pet.query().whereIn("ownerId", Person.query().select("id").where("age", ">", 20))).length,
    2,
  );
});
await check("patches, JSON, functions", async () => {
  await Person.query()
    .patch({ age: raw("age + ?", 1) })
    .where("name", "Bob");
  assert.equal(
    await Person.query()
      .patch({ address: { a: 1 } })
      .where({ name: "Bob" }),
    1,
  );
  assert.equal((await Person.query().findOne(raw("json_extract(address, '$.city')"), "Ulm")).name, "Anna");
  assert.equal(
    (
      await Person.query()
        .select(fn.coalesce(ref("parentId"), 0).as("c"), fn.concat("name", "!").as("e"))
        .findOne({ name: "Bob" })
    ).c,
    0,
  );
  const p = await Person.query().orderBy("id").page(1, 2);
  assert.deepEqual([p.total, p.results.length], [3, 1]);
  const range = await Person.query().orderBy("age", "desc").range(0, 0);
  assert.deepEqual([range.total, range.results[0].name], [3, "Anna"]);
});
await check("errors by kind", async () => {
  await assert.rejects(
    Movie.query().insert({ title: "One" }),
    (e) => e instanceof UniqueViolationError && e.constraint.endsWith("movies_title_unique"),
  );
  await assert.rejects(
    Pet.query().insert({ ownerId: 999 }),
    (e) =>
      e instanceof ForeignKeyViolationError &&
      e.table === "pets" &&
      e.constraint === "pets_ownerid_foreign",
  );
  await assert.rejects(Movie.query().delete(), (e) => e instanceof ForeignKeyViolationError);
  await assert.rejects(
    Movie.query().insert({ title: null }),
    (e) => e instanceof NotNullViolationError && e.column === "title",
  );
  await assert.rejects(Movie.query().insert({ title: "x".repeat(21) }), (e) => e instanceof DataError);
  await assert.rejects(
    Person.query().insert({ name: "neg", age: -1 }),
    (e) => e instanceof CheckViolationError || (e.nativeError ?? e).errno === 3819,
  );
});
await check("transactions", async () => {
  await assert.rejects(
    Person.transaction(async (t) => {
      await Person.query(t).delete();
      throw new Error("no");
    }),
    /no/,
  );
  await Person.transaction(async (t) => {
    const p = await Person.query(t).findOne({ name: "Bob" }).forUpdate();
    await p.$query(t).patch({ name: "Rob" });
  });
  assert.equal(await Person.query().where("name", "Rob").resultSize(), 1);
  await Person.query().delete().where("name", "Anna");
  assert.deepEqual(
    [await Pet.query().resultSize(), (await Person.query().findOne({ name: "Kid" })).parentId],
    [1, null],
  );
});
await knex.destroy();
finish();
