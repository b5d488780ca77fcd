#include "twinedge.h"
#include "esphome/core/application.h"
#include "esphome/core/log.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

namespace esphome::twinedge {

static const char *const TAG = "twinedge";

namespace {

class NumberSource final : public Source {
  public:
    explicit NumberSource(sensor::Sensor *sensor) : sensor_(sensor) {
    }
    bool has_state() const override {
        return this->sensor_->has_state();
    }
    bool read(float *x) const override {
        *x = this->sensor_->state;
        return true;
    }

  protected:
    sensor::Sensor *sensor_;
};

#ifdef USE_TEXT_SENSOR
class CategorySource final : public Source {
  public:
    CategorySource(text_sensor::TextSensor *sensor, uint16_t width, const Level *levels,
                   uint16_t count)
        : sensor_(sensor), levels_(levels), width_(width), count_(count) {
    }
    bool has_state() const override {
        return this->sensor_->has_state();
    }
    bool read(float *x) const override {
        const std::string &text = this->sensor_->state;
        const Level *end = this->levels_ + this->count_;
        const Level *level = std::find_if(this->levels_, end,
                                          [&text](const Level &one) { return text == one.text; });
        bool missing = level == end && (text.empty() || text == "unknown" || text == "unavailable");
        std::fill(x, x + this->width_, missing ? NAN : 0.0f);
        if (level != end)
            x[level->feature] = 1.0f;
        return level != end || missing;
    }

  protected:
    text_sensor::TextSensor *sensor_;
    const Level *levels_;
    uint16_t width_;
    uint16_t count_;
};
#endif

// The store's storage: two blocks of RAM.
int read_block(void *blocks, uint32_t address, void *bytes, uint32_t size) {
    std::memcpy(bytes, static_cast<uint8_t *>(blocks) + address, size);
    return 0;
}
int program_block(void *blocks, uint32_t address, const void *bytes, uint32_t size) {
    std::memcpy(static_cast<uint8_t *>(blocks) + address, bytes, size);
    return 0;
}
int keep_block(void *, uint32_t) { // RAM can be programmed as it is
    return 0;
}

// Slots of a block that hold no point, and some to spare, so that points are moved less often.
constexpr uint32_t MORE_SLOTS = 8;

} // namespace

void TwinModel::watch_(Source *source, uint16_t feature) {
    this->sources_.push_back(Placed{std::unique_ptr<Source>(source), feature});
}

void TwinModel::add_source(sensor::Sensor *source, uint16_t feature) {
    this->watch_(new NumberSource(source), feature);
    source->add_on_state_callback([this](float) { this->enable_loop(); });
}

#ifdef USE_TEXT_SENSOR
void TwinModel::add_source(text_sensor::TextSensor *source, uint16_t feature, uint16_t width,
                           const Level *levels, uint16_t count) {
    this->watch_(new CategorySource(source, width, levels, count), feature);
    source->add_on_state_callback([this](const std::string &) { this->enable_loop(); });
}
#endif

void TwinModel::setup() {
    twin_status status = twin_open(&this->model_, this->pack_, this->size_);
    if (status == TWIN_OK && this->coverage_ != 0)
        status = twin_set_coverage(&this->model_, this->coverage_);
    if (!this->accepted_(status))
        return;
    this->scratch_size_ = twin_scratch_size(&this->model_);
    this->scratch_.reset(new (std::nothrow) uint8_t[this->scratch_size_]);
    this->x_.reset(new (std::nothrow) float[this->model_.features]);
    if (this->scratch_) {
        status =
            twin_self_test(&this->model_, this->pack_, this->scratch_.get(), this->scratch_size_);
        if (status != TWIN_ERROR_UNTESTED && !this->accepted_(status))
            return;
    }
    if (!this->scratch_ || !this->x_ || (this->points_ != 0 && !this->open_store_())) {
        this->mark_failed(LOG_STR("there is not enough memory"));
        return;
    }
    if (this->points_ != 0)
        this->recall_();
}

bool TwinModel::accepted_(twin_status status) {
    if (status == TWIN_OK)
        return true;
    ESP_LOGE(TAG, "The pack was refused: %s", twin_text(status));
    this->mark_failed(LOG_STR("the pack was refused"));
    return false;
}

bool TwinModel::open_store_() {
    this->storage_ = {read_block, program_block, keep_block, nullptr, UINT32_C(1) << 20, 1};
    uint32_t size = twin_store_size(&this->model_, &this->storage_, this->points_);
    uint32_t slot = size - static_cast<uint32_t>(sizeof(twin_point)) * this->points_;
    this->storage_.block_size = slot * (this->points_ + MORE_SLOTS);
    this->blocks_.reset(new (std::nothrow) uint8_t[2 * this->storage_.block_size]());
    this->room_.reset(new (std::nothrow) uint32_t[(size + 3) / 4]);
    this->storage_.context = this->blocks_.get();
    return size != 0 && this->blocks_ && this->room_ &&
           twin_store_open(&this->store_, &this->model_, this->pack_, &this->storage_,
                           this->room_.get(), this->points_) == TWIN_OK;
}

// Learn again what was learnt before the restart, in the same order; this pack scores it.
void TwinModel::recall_() {
    struct Found {
        uint32_t number;
        uint16_t place;
    };
    std::vector<Found> found;
    float truth;
    this->memory_.reset(this->make_memory_(this->key_, this->points_));
    for (uint16_t place = 0; place < this->points_; place++) {
        uint32_t number = this->memory_->load(place, &truth, this->x_.get());
        if (number != 0 && number % this->points_ == place)
            found.push_back(Found{number, place});
    }
    std::sort(found.begin(), found.end(),
              [](const Found &one, const Found &other) { return one.number < other.number; });
    for (const Found &one : found) {
        this->memory_->load(one.place, &truth, this->x_.get());
        uint32_t stored = this->store_.journal.number;
        twin_status status = twin_learn(&this->store_, this->scratch_.get(), this->scratch_size_,
                                        this->x_.get(), truth, 0);
        if (status == TWIN_OK)
            this->kept_.push_back(Kept{one.number, stored});
        else
            ESP_LOGW(TAG, "Point %u is left out: %s", static_cast<unsigned>(one.number),
                     twin_text(status));
        this->next_ = one.number + 1;
        App.feed_wdt();
    }
}

void TwinModel::loop() {
    bool known = true;
    twin_prediction out;
    this->disable_loop(); // until a source has a new state
    for (const Placed &one : this->sources_)
        if (!one.source->has_state())
            return;
    for (const Placed &one : this->sources_)
        known &= one.source->read(this->x_.get() + one.feature);
    this->status_ = this->points_ != 0
                        ? twin_predict_adapted(&this->store_, this->scratch_.get(),
                                               this->scratch_size_, this->x_.get(), &out)
                        : twin_predict(&this->model_, this->scratch_.get(), this->scratch_size_,
                                       this->x_.get(), &out, nullptr);
    if (this->status_ != TWIN_OK) {
        ESP_LOGW(TAG, "No prediction: %s", twin_text(this->status_));
        this->status_set_warning(LOG_STR("a source has no value"));
    } else {
        this->status_clear_warning();
    }
    this->publish_(out, known);
}

// A prediction that was refused is NaN, which ESPHome takes for unknown.
void TwinModel::publish_(const twin_prediction &out, bool known) {
    if (this->value_sensor_ != nullptr)
        this->value_sensor_->publish_state(out.mean);
    if (this->low_sensor_ != nullptr)
        this->low_sensor_->publish_state(out.low);
    if (this->high_sensor_ != nullptr)
        this->high_sensor_->publish_state(out.high);
    if (this->outside_binary_sensor_ == nullptr)
        return;
    if (this->status_ == TWIN_OK)
        this->outside_binary_sensor_->publish_state(out.outside != 0 || !known);
    else
        this->outside_binary_sensor_->invalidate_state();
}

bool TwinModel::learn(float truth) {
    twin_status status = this->memory_ ? this->status_ : TWIN_ERROR_STORE;
    uint32_t number = this->next_, stored = this->store_.journal.number;
    if (status == TWIN_OK && !this->kept_.empty() &&
        this->kept_.front().number + this->points_ <= number) // its place is needed
        status = this->forget_(this->kept_.begin(), this->kept_.begin() + 1);
    if (status == TWIN_OK)
        status = twin_learn(&this->store_, this->scratch_.get(), this->scratch_size_,
                            this->x_.get(), truth, 0);
    if (status != TWIN_OK) {
        ESP_LOGW(TAG, "%g was not learnt: %s", truth, twin_text(status));
        return false;
    }
    this->kept_.push_back(Kept{number, stored});
    this->next_++;
    if (!this->memory_->save(number % this->points_, number, truth, this->x_.get()) ||
        !global_preferences->sync())
        ESP_LOGW(TAG, "%g was learnt, but only until the next restart", truth);
    this->enable_loop();
    return true;
}

// Points that are kept, in the store and in the memory.
twin_status TwinModel::forget_(std::vector<Kept>::iterator first,
                               std::vector<Kept>::iterator last) {
    if (first == last)
        return TWIN_OK;
    twin_status status = twin_forget(&this->store_, first->stored, (last - 1)->stored);
    if (status == TWIN_OK) {
        for (auto one = first; one != last; ++one)
            this->memory_->save(one->number % this->points_, 0, NAN, this->x_.get());
        this->kept_.erase(first, last);
    }
    return status;
}

void TwinModel::forget(bool all) {
    if (this->kept_.empty())
        return;
    twin_status status =
        this->forget_(all ? this->kept_.begin() : this->kept_.end() - 1, this->kept_.end());
    if (status != TWIN_OK || !global_preferences->sync())
        ESP_LOGW(TAG, "Points could not be forgotten: %s", twin_text(status));
    this->enable_loop();
}

void TwinModel::dump_config() {
    ESP_LOGCONFIG(TAG,
                  "twinedge:\n"
                  "  Pack: %u bytes, %u twins, %u anchors, %u features\n"
                  "  Scratch: %u bytes\n"
                  "  Points: %u of %u",
                  static_cast<unsigned>(this->size_), this->model_.twin_count,
                  this->model_.anchor_count, this->model_.features,
                  static_cast<unsigned>(this->scratch_size_), this->store_.count, this->points_);
    LOG_SENSOR("  ", "Value", this->value_sensor_);
    LOG_SENSOR("  ", "Low", this->low_sensor_);
    LOG_SENSOR("  ", "High", this->high_sensor_);
    LOG_BINARY_SENSOR("  ", "Outside", this->outside_binary_sensor_);
}

} // namespace esphome::twinedge
