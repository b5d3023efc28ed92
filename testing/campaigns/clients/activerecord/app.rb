# ActiveRecord: migrations up and down twice, schema dumps that are equal, types, associations, JSON, enums,
# upserts, batches, locks, savepoints, errors by class.
require 'active_record'
require 'stringio'
require_relative 'check'

ActiveRecord::Base.establish_connection(adapter: 'mysql2', host: ENV['CLIENT_HOST'], port: ENV['CLIENT_PORT'].to_i, username: ENV['CLIENT_USER'],
                                        password: ENV['CLIENT_PASSWORD'], database: ENV['CLIENT_DATABASE'], encoding: 'utf8mb4', pool: 8, prepared_statements: ENV['CLIENT_PREPARED'] != '0')
ActiveRecord::Migration.verbose = false
C = ActiveRecord::Base.connection
class CreateAuthors < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, comment: "writers' table" do |t|
      t.string :name, null: false, limit: 80, comment: "it's"
      t.string :email, index: { unique: true }
      t.integer :kind, default: 0, null: false
      t.boolean :active, default: true
      t.decimal :money, precision: 12, scale: 3, default: '0.0'
      t.float :rate
      t.float :score, limit: 53
      t.bigint :big, unsigned: true
      t.integer :small, limit: 2
      t.json :meta
      t.date :born
      t.datetime :seen, precision: 6
      t.time :at
      t.binary :raw, limit: 20
      t.blob :data, size: :medium
      t.text :bio, size: :long
      t.string :code, limit: 5, collation: 'utf8mb4_bin'
      t.virtual :upper_name, type: :string, as: 'UPPER(`name`)', stored: true
      t.column :mood, "enum('good','bad')", default: 'good'
      t.datetime :stamp, default: -> { 'CURRENT_TIMESTAMP' }
      t.timestamps
      t.index %i[name born], length: { name: 10 }, name: 'name_born'
      t.check_constraint '`money` >= 0', name: 'money_ok'
    end
  end
end
class CreateBooks < ActiveRecord::Migration[6.1]
  def change
    create_table :books do |t|
      t.references :author, null: false, foreign_key: { on_delete: :cascade }
      t.references :editor, foreign_key: { to_table: :authors, on_delete: :nullify, on_update: :restrict }
      t.string :title, null: false
      t.integer :views, default: 0, null: false
      t.integer :lock_version, default: 0
      t.integer :tags_count, default: 0
      t.index %i[author_id title], unique: true
    end
    create_table(:tags, id: false) { |t| t.string :label, limit: 40, primary_key: true }
    create_join_table(:books, :tags, column_options: { type: :bigint }) { |t| t.index :book_id }
  end
end
class ChangeBooks < ActiveRecord::Migration[6.1]
  def up
    add_column :books, :pages, :integer, unsigned: true, default: 10, after: :title
    change_column :books, :title, :string, limit: 150, null: false
    change_column_default :books, :views, from: 0, to: 1
    change_column_null :books, :tags_count, false, 0
    rename_column :books, :pages, :page_count
    add_index :books, :page_count, order: { page_count: :desc }
    rename_index :books, 'index_books_on_page_count', 'by_pages'
    change_table_comment :books, 'the books'
    change_column_comment :books, :views, 'count'
    rename_table :books_tags, :taggings
    change_table(:tags, bulk: true) { |t| t.string :extra; t.integer :weight, default: 1; t.index :weight }
  end

  def down
    change_table(:tags, bulk: true) { |t| t.remove_index :weight; t.remove :extra, :weight }
    rename_table :taggings, :books_tags
    remove_column :books, :page_count
    change_column :books, :title, :string, null: false
    change_column_default :books, :views, 0
    change_column_null :books, :tags_count, true
    change_table_comment :books, nil
    change_column_comment :books, :views, nil
  end
end
STEPS = [CreateAuthors, CreateBooks, ChangeBooks].freeze
def dump
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump(C, out)
  out.string
end
check('migrations up and down twice; dumps are equal') do
  dumps = 2.times.map do
    STEPS.each { |s| s.new.migrate(:up) }
    d = dump
    STEPS.reverse_each { |s| s.new.migrate(:down) }
    same [], C.tables
    d
  end
  same dumps[0], dumps[1]
  STEPS.each { |s| s.new.migrate(:up) }
  first = dump
  C.disable_referential_integrity { eval(first) } # the dump loads, and dumps the same
  same first.lines.reject { |l| l =~ /schema_migrations|version/ }, dump.lines.reject { |l| l =~ /schema_migrations|version/ }
  %w[t.json\ "meta" precision:\ 6 check_constraint unsigned:\ true on_delete:\ :cascade as:\ "upper(`name`)" collation:\ "utf8mb4_bin" length:\ {\ name:\ 10\ } ].each { |x| raise "no #{x} in #{first}" unless first.include?(x) }
end
class Author < ActiveRecord::Base
  enum kind: { person: 0, team: 1 }
  has_many :books
  has_many :tags, through: :books
  scope :busy, -> { where(Book.where('books.author_id = authors.id').arel.exists) }
end
class Book < ActiveRecord::Base
  belongs_to :author
  belongs_to :editor, class_name: 'Author', optional: true
  has_and_belongs_to_many :tags, join_table: 'taggings', association_foreign_key: 'tag_id'
end
class Tag < ActiveRecord::Base; self.primary_key = 'label'; end
check('introspection') do
  c = C.columns('authors').to_h { |x| [x.name, x] }
  same ['varchar(80)', false, "it's", :string], [c['name'].sql_type, c['name'].null, c['name'].comment, c['name'].type]
  same [:boolean, '1', :json, 6, true, 'CURRENT_TIMESTAMP'], [c['active'].type, c['active'].default, c['meta'].type, c['seen'].precision, c['upper_name'].virtual?, c['stamp'].default_function]
  same %w[author_id editor_id], C.foreign_keys('books').map(&:column).sort
  same [:cascade, :nullify], C.foreign_keys('books').map(&:on_delete).sort
  same ['money_ok'], C.check_constraints('authors').map(&:name)
  same 'id', C.primary_key('authors')
  same ['the books', 4], [C.table_comment('books'), C.indexes('books').reject { |i| i.name == 'x' }.size]
  same [true, false, true], [C.table_exists?('books'), C.view_exists?('books'), C.index_exists?('books', %i[author_id title], unique: true)]
  same [true, true, true], [C.supports_json?, C.supports_check_constraints?, C.supports_common_table_expressions?]
end
check('types') do
  seen = Time.utc(2024, 2, 29, 1, 2, 3.456789r)
  a = Author.create!(name: 'Ann 🦀', email: 'ann@x', kind: :team, active: false, money: '123456789.125', rate: 1.5, score: 0.1, big: 18_446_744_073_709_551_615, small: -32_768,
                     meta: { 'a' => [1, { 'b' => 'é' }], 'n' => nil }, born: '2000-02-29', seen: seen, at: '10:11:12', raw: "\0\xFF".b, data: "\1" * 70_000, bio: '🦀' * 20_000, code: 'aB')
  r = Author.find(a.id)
  same ['Ann 🦀', 'team', false, BigDecimal('123456789.125'), 1.5, 0.1, 18_446_744_073_709_551_615, -32_768, { 'a' => [1, { 'b' => 'é' }], 'n' => nil }, Date.new(2000, 2, 29), seen, "\0\xFF".b, 70_000, 20_000, 'good', 'ANN 🦀'],
       [r.name, r.kind, r.active, r.money, r.rate, r.score, r.big, r.small, r.meta, r.born, r.seen, r.raw, r.data.size, r.bio.size, r.mood, r.upper_name]
  same '10:11:12', r.at.strftime('%H:%M:%S')
end
check('bulk inserts, upserts') do
  Author.insert_all!((0..4).map { |i| { name: "u#{i}", email: "u#{i}@x", meta: { i: i }, created_at: Time.now, updated_at: Time.now } })
  Author.insert_all([{ name: 'no', email: 'u1@x', created_at: Time.now, updated_at: Time.now }])
  Author.upsert_all([{ name: 'changed', email: 'u1@x', created_at: Time.now, updated_at: Time.now }])
  same %w[changed 6], [Author.find_by(email: 'u1@x').name, Author.count.to_s]
  same 'u9', Author.create_with(name: 'u9').find_or_create_by!(email: 'u9@x').name
  fails(ActiveRecord::RecordNotUnique) { Author.create!(name: 'd', email: 'u1@x') }
  fails(ActiveRecord::NotNullViolation) { Author.insert!({ name: nil }) }
  fails(ActiveRecord::ValueTooLong) { Author.create!(name: 'x' * 81) }
  fails(ActiveRecord::RangeError) { Author.connection.execute('UPDATE authors SET small = 40000') }
  fails(ActiveRecord::StatementInvalid) { Author.create!(name: 'neg', money: -1) }
end
check('associations, eager loading') do
  tags = %w[x y].map { |l| Tag.create!(label: l) }
  Author.order(:id).limit(3).each { |a| 3.times { |v| a.books.create!(title: "p#{v}", views: v).tags = tags } }
  q = Author.eager_load(books: :tags).where(books: { views: 1.. }).order(id: :desc, 'books.views' => :desc)
  same [2, [2, 1], 2], [q.limit(2).offset(1).to_a.size, q.first.books.map(&:views), q.first.books.first.tags.size]
  same [3, 3], [Author.preload(:books).order(:id).first.books.size, Author.busy.count]
  same({ 1 => 3, 2 => 3, 3 => 3 }, Book.group(:author_id).having('COUNT(*) > 2').order(:author_id).count)
  same [9, 1, 2], [Book.sum(:views), Book.average(:views).to_i, Book.maximum(:views)]
  same 3, Author.joins(:books).merge(Book.where(views: 2)).distinct.count
  same 4, Author.left_joins(:books).where(books: { id: nil }).count
  same %w[x y], Author.find(1).tags.distinct.pluck(:label).sort
end
check('conditions, JSON, batches') do
  same 2, Author.where("meta->'$.i' >= ?", 3).count
  same 1, Author.where("JSON_UNQUOTE(JSON_EXTRACT(meta, '$.a[1].b')) = ?", 'é').count
  same 6, Author.where('name LIKE ?', "#{Author.sanitize_sql_like('u')}%").or(Author.where(kind: :team)).where.not(id: 3).count
  same [3, 4], Author.where('name REGEXP ?', '^u').in_batches(of: 2).map(&:count).then { |x| [x.size, x.sum - 1] }
  same 7, Author.find_each(batch_size: 3).count
  same [['u0', 1]], Author.where(name: 'u0').pluck(:name, Arel.sql('1 + 0'))
  same 2, Book.where(views: 0).limit(2).update_all('views = views + 5')
  same 2, Book.where('views >= 5').order(:id).limit(2).delete_all
  same 1, Author.joins(:books).where(books: { title: 'p2' }).where(id: 1).update_all(small: 3)
end
check('locks, savepoints, isolation, threads') do
  b = Book.find_by!(views: 1)
  c = Book.find(b.id)
  b.update!(views: 7)
  fails(ActiveRecord::StaleObjectError) { c.update!(views: 8) }
  Author.transaction do
    Tag.create!(label: 'outer')
    Author.transaction(requires_new: true) { Tag.create!(label: 'inner'); raise ActiveRecord::Rollback }
  end
  same %w[outer x y], Tag.order(:label).pluck(:label)
  Author.transaction(isolation: :serializable) { same 1, Author.lock('FOR UPDATE SKIP LOCKED').where(id: 1).to_a.size }
  Author.update_all(small: 0)
  6.times.map { Thread.new { 5.times { Author.connection_pool.with_connection { Author.transaction { a = Author.lock.find(1); a.update!(small: a.small + 1) } } } } }.each(&:join)
  same 30, Author.find(1).small
end
check('cascade, nullify, restrict') do
  Book.last.update!(editor_id: 2)
  Author.where(id: 2).delete_all
  same [0, nil], [Book.where(author_id: 2).count, Book.last.editor_id]
  fails(ActiveRecord::InvalidForeignKey) { C.execute("INSERT INTO books (author_id, title) VALUES (999, 'x')") }
  fails(ActiveRecord::MismatchedForeignKey) { C.create_table(:bad) { |t| t.integer :author_id }; C.add_foreign_key(:bad, :authors) }
  fails(ActiveRecord::StatementInvalid) { C.execute('SELECT nosuch FROM books') }
end
check('explain, current database, charset, truncate') do
  plan = Book.where(id: 1).explain
  raise "no plan in #{plan}" unless plan.start_with?('EXPLAIN for: SELECT') && plan.lines.size > 3
  same [ENV['CLIENT_DATABASE'], 'utf8mb4'], [C.current_database, C.select_value('SELECT @@character_set_client')]
  same 'STRICT_ALL_TABLES', C.show_variable('sql_mode')[/STRICT_ALL_TABLES/]
  C.truncate_tables('taggings', 'books')
  same 0, Book.count
end
exit($failed.zero? ? 0 : 1)
